"""
Fetches Kafka's own jars once into a per-user cache and checks them against a lock.

They come through Maven if it is installed, else through the Ivy inside PySpark. Both use the
user's settings (mirrors, proxies); this module contains no address. Spark's Ivy skips
scala-library, because Spark brings its own: it is copied from PySpark and must match the lock
like every other jar.
"""

import functools
import hashlib
import importlib.resources
import importlib.util
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eos_mirror.testing.errors import NotInstalled
from eos_mirror.testing.java import java_home
from eos_mirror.testing.locks import locked
from eos_mirror.testing.processes import run
from eos_mirror.testing.releases import Release

log = logging.getLogger(__name__)

COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies"
FETCH_TIMEOUT_S = 600.0
SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJar:
    """Name, size and digest that one jar must have."""

    name: str
    size_bytes: int
    sha256: str


def lock_name(release: Release) -> str:
    """Return the name of the file with the lock of a release."""
    return f"kafka-{release.version}.lock"


@functools.cache
def locked_jars(release: Release) -> Sequence[LockedJar]:
    """Return the committed lock of a release."""
    text = importlib.resources.files("eos_mirror.testing").joinpath(lock_name(release))
    rows = (line.split() for line in text.read_text(encoding="utf-8").splitlines())
    return tuple(
        LockedJar(name=name, size_bytes=int(size), sha256=digest) for name, size, digest in rows
    )


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of fetched and derived files: EOS_MIRROR_CACHE, or the user's cache."""
    if ours := environ.get("EOS_MIRROR_CACHE"):
        return Path(ours)
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".cache"
    return Path(base) / "eos-mirror"


def jars_folder(release: Release, cache: Path) -> Path:
    """Return the folder of the fetched jars of a release."""
    return cache / f"kafka-{release.version}"


def cached(release: Release, cache: Path) -> bool:
    """Return whether every jar exists with its size. Contents were checked after the fetch."""
    folder = jars_folder(release, cache)
    return all(_size(folder / jar.name) == jar.size_bytes for jar in locked_jars(release))


def ensure_jars(release: Release, java: Path, *, cache: Path | None = None) -> Path:
    """
    Return a folder with exactly the locked jars; the first time, fetch them.

    Raises:
        NotInstalled: The jars are neither cached nor fetchable, or differ from the lock.
    """
    cache = cache or cache_folder()
    folder = jars_folder(release, cache)
    if cached(release, cache):
        return folder
    with locked(cache / ".fetch"):
        if not cached(release, cache):
            _fetch_into(release, folder, java)
    return folder


def verify(release: Release, folder: Path) -> None:
    """
    Check that a folder holds the locked jars, by name, size and digest.

    Raises:
        NotInstalled: A jar is missing or differs; the message names the first one.
    """
    for jar in locked_jars(release):
        path = folder / jar.name
        if not path.is_file():
            raise NotInstalled(f"{release}: {jar.name} was not fetched")
        if hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            raise NotInstalled(
                f"{release}: {jar.name} has the wrong sha256; it was not used. "
                "Check the repository or mirror that served it"
            )


def normalised_name(release: Release, file_name: str) -> str:
    """Convert Ivy's `<organisation>_<name>-<version>.jar` to Maven's `<name>-<version>.jar`."""
    return next(
        (jar.name for jar in locked_jars(release) if file_name.endswith(f"_{jar.name}")), file_name
    )


def _fetch_into(release: Release, folder: Path, java: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as temporary:
        fetched = Path(temporary) / "jars"
        fetched.mkdir()
        if maven := shutil.which("mvn"):
            log.info("fetching %s with Maven into %s", release, folder)
            fetch_with_maven(release, Path(maven), java, fetched)
        else:
            log.info("fetching %s with PySpark's Ivy into %s", release, folder)
            fetch_with_spark(release, java, fetched)
        verify(release, fetched)
        shutil.rmtree(folder, ignore_errors=True)
        fetched.rename(folder)


def fetch_with_maven(release: Release, maven: Path, java: Path, folder: Path) -> None:
    """Fill a folder through Maven. Raises NotInstalled when Maven fails."""
    pom = folder.parent / "pom.xml"
    pom.write_text(_pom(release), encoding="utf-8")
    command = [str(maven), "-B", "-ntp", "-q", "-f", str(pom), COPY_DEPENDENCIES]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    _run_fetcher(release, [*command, *options], environ={"JAVA_HOME": str(java_home(java))})


def fetch_with_spark(release: Release, java: Path, folder: Path) -> None:
    """Fill a folder through the Ivy inside PySpark. Raises NotInstalled when that fails."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled(f"{release} is not cached: put `mvn` on the PATH to fetch it")
    spark = Path(spec.submodule_search_locations[0])
    ivy, nothing = folder.parent / "ivy", folder.parent / "nothing.py"
    nothing.touch()
    command = [str(spark / "bin" / "spark-submit"), "--master", "local[1]"]
    options = [
        "--packages",
        ",".join(release.roots),
        "--conf",
        f"spark.jars.ivy={ivy}",
        str(nothing),
    ]
    environ = {
        "JAVA_HOME": str(java_home(java)),
        "SPARK_HOME": str(spark),
        "PYSPARK_PYTHON": sys.executable,
    }
    _run_fetcher(release, [*command, *options], environ=environ)
    for jar in (ivy / "jars").iterdir():
        jar.rename(folder / normalised_name(release, jar.name))
    for jar in (spark / "jars").glob("scala-library-2.13.*.jar"):
        shutil.copyfile(jar, folder / jar.name)


def _run_fetcher(release: Release, command: Sequence[str], *, environ: Mapping[str, str]) -> None:
    what = Path(command[0]).name
    done = run(command, timeout_s=FETCH_TIMEOUT_S, environ={**os.environ, **environ})
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
        causes = [line for line in lines if re.search(r"ERROR|unresolved|Exception", line)]
        cause = (causes or lines[-1:])[0].strip()
        raise NotInstalled(
            f"{release} is not cached and {what} could not fetch it: check the network "
            f"and the proxy or mirror settings of {what} ({cause[:SHOWN_CHARACTERS]})"
        )


def _pom(release: Release) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, name, version in (root.split(":") for root in release.roots)
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>eos-mirror</groupId>"
        "<artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
