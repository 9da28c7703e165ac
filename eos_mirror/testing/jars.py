"""
Kafka's own jars, fetched once into a per-user cache and checked against a lock.

They come through Maven when it is installed, else through the Ivy inside PySpark. Both honour
the user's own settings (mirrors, proxies), and no address is known here. Spark leaves
scala-library out, because it brings its own: that one is taken from PySpark and must match
the lock like every other jar.
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

log = logging.getLogger(__name__)

KAFKA_VERSION = "4.3.1"
ROOTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",  # without it the broker logs nothing
)
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies"
FETCH_TIMEOUT_S = 600.0
SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJar:
    """What one jar must be."""

    name: str
    size_bytes: int
    sha256: str


@functools.cache
def locked_jars() -> Sequence[LockedJar]:
    """The committed lock of this Kafka version."""
    text = importlib.resources.files("eos_mirror.testing").joinpath(f"kafka-{KAFKA_VERSION}.lock")
    rows = (line.split() for line in text.read_text(encoding="utf-8").splitlines())
    return tuple(
        LockedJar(name=name, size_bytes=int(size), sha256=digest) for name, size, digest in rows
    )


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where fetched and derived files live: EOS_MIRROR_CACHE, else the user's cache folder."""
    if ours := environ.get("EOS_MIRROR_CACHE"):
        return Path(ours)
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".cache"
    return Path(base) / "eos-mirror"


def jars_folder(cache: Path) -> Path:
    """Where the jars are once they were fetched."""
    return cache / f"kafka-{KAFKA_VERSION}"


def cached(cache: Path) -> bool:
    """Whether every jar is there with its size. Contents were checked when they were fetched."""
    folder = jars_folder(cache)
    return all(_size(folder / jar.name) == jar.size_bytes for jar in locked_jars())


def ensure_jars(java: Path, *, cache: Path | None = None) -> Path:
    """
    Folder with exactly the locked jars; fetches them the first time.

    Raises:
        NotInstalled: They can neither be found nor fetched, or are not what the lock says.
    """
    cache = cache or cache_folder()
    if cached(cache):
        return jars_folder(cache)
    with locked(cache / ".fetch"):
        if not cached(cache):
            _fetch_into(jars_folder(cache), java)
    return jars_folder(cache)


def verify(folder: Path) -> None:
    """
    Check that a folder holds the locked jars, by name, size and digest.

    Raises:
        NotInstalled: Something is missing or differs; names the first.
    """
    for jar in locked_jars():
        path = folder / jar.name
        if not path.is_file():
            raise NotInstalled(f"Kafka {KAFKA_VERSION}: {jar.name} was not fetched")
        if hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            raise NotInstalled(
                f"Kafka {KAFKA_VERSION}: {jar.name} has the wrong sha256; it was not used. "
                "Check the repository or mirror that served it"
            )


def normalised_name(file_name: str) -> str:
    """Ivy's `<organisation>_<name>-<version>.jar` as Maven's `<name>-<version>.jar`."""
    return next(
        (jar.name for jar in locked_jars() if file_name.endswith(f"_{jar.name}")), file_name
    )


def _fetch_into(folder: Path, java: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as temporary:
        fetched = Path(temporary) / "jars"
        fetched.mkdir()
        if maven := shutil.which("mvn"):
            log.info("fetching Kafka %s with Maven into %s", KAFKA_VERSION, folder)
            fetch_with_maven(Path(maven), java, fetched)
        else:
            log.info("fetching Kafka %s with PySpark's Ivy into %s", KAFKA_VERSION, folder)
            fetch_with_spark(java, fetched)
        verify(fetched)
        shutil.rmtree(folder, ignore_errors=True)
        fetched.rename(folder)


def fetch_with_maven(maven: Path, java: Path, folder: Path) -> None:
    """Fill a folder through Maven. Raises NotInstalled when Maven fails."""
    pom = folder.parent / "pom.xml"
    pom.write_text(_pom(), encoding="utf-8")
    command = [str(maven), "-B", "-ntp", "-q", "-f", str(pom), COPY_DEPENDENCIES]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    _run_fetcher("mvn", [*command, *options], environ={"JAVA_HOME": str(java_home(java))})


def fetch_with_spark(java: Path, folder: Path) -> None:
    """Fill a folder through the Ivy inside PySpark. Raises NotInstalled when that fails."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled(
            f"Kafka {KAFKA_VERSION} is not cached: put `mvn` on the PATH to fetch it"
        )
    spark = Path(spec.submodule_search_locations[0])
    ivy, nothing = folder.parent / "ivy", folder.parent / "nothing.py"
    nothing.touch()
    command = [str(spark / "bin" / "spark-submit"), "--master", "local[1]"]
    options = ["--packages", ",".join(ROOTS), "--conf", f"spark.jars.ivy={ivy}", str(nothing)]
    environ = {
        "JAVA_HOME": str(java_home(java)),
        "SPARK_HOME": str(spark),
        "PYSPARK_PYTHON": sys.executable,
    }
    _run_fetcher("spark-submit", [*command, *options], environ=environ)
    for jar in (ivy / "jars").iterdir():
        jar.rename(folder / normalised_name(jar.name))
    for jar in (spark / "jars").glob("scala-library-2.13.*.jar"):
        shutil.copyfile(jar, folder / jar.name)


def _run_fetcher(what: str, command: Sequence[str], *, environ: Mapping[str, str]) -> None:
    done = run(command, timeout_s=FETCH_TIMEOUT_S, environ={**os.environ, **environ})
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["it said nothing"]
        causes = [line for line in lines if re.search(r"ERROR|unresolved|Exception", line)]
        cause = (causes or lines[-1:])[0].strip()
        raise NotInstalled(
            f"Kafka {KAFKA_VERSION} is not cached and {what} could not fetch it: check the network "
            f"and the proxy or mirror settings of {what} ({cause[:SHOWN_CHARACTERS]})"
        )


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, name, version in (root.split(":") for root in ROOTS)
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>eos-mirror</groupId>"
        "<artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
