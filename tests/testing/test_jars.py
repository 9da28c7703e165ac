"""Fetching Kafka's jars, with fake fetchers."""

import functools
import hashlib
import os
import sys
from pathlib import Path

import pytest

from eos_mirror.testing import NotInstalled, jars
from eos_mirror.testing.jars import LockedJar
from eos_mirror.testing.releases import DEFAULT, RELEASES, Release

CONTENT = {"kafka_2.13-4.3.1.jar": b"kafka", "scala-library-2.13.18.jar": b"scala"}


@pytest.fixture
def small_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of two jars instead of ninety-four."""
    lock = tuple(
        LockedJar(name=name, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in CONTENT.items()
    )
    monkeypatch.setattr(jars, "locked_jars", lambda _: lock)


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A path where a Java might be; these tests never run it."""
    return tmp_path / "jdk" / "bin" / "java"


def install_maven(folder: Path, script: str) -> dict[str, str]:
    """Return a PATH whose `mvn` is this shell script; `$out` is the folder that it has to fill."""
    folder.mkdir()
    maven = folder / "mvn"
    head = '#!/bin/sh\nfor a; do case "$a" in -DoutputDirectory=*) out=${a#*=};; esac; done\n'
    maven.write_text(head + script, encoding="utf-8")
    maven.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


GOOD_MAVEN = "".join(f"printf {data.decode()} > $out/{name}\n" for name, data in CONTENT.items())


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_the_committed_lock_names_the_broker_the_tools_and_a_log_binding(release: Release) -> None:
    """The lock has every root jar, each with a size and a sha256, and no address."""
    lock = {jar.name: jar for jar in jars.locked_jars(release)}

    roots = {root.split(":")[1] + "-" + root.split(":")[2] + ".jar" for root in release.roots}
    assert roots <= lock.keys()
    assert 90 < len(lock) < 110
    bindings = {"log4j-slf4j-impl-2.25.4.jar", "slf4j-reload4j-1.7.36.jar"} & lock.keys()
    assert len(bindings) == 1, "with two, the order of the jars decides which one logs"
    assert all(len(jar.sha256) == 64 and jar.size_bytes > 0 for jar in lock.values())
    assert not any("/" in name for name in lock)


def test_names_from_ivy_and_maven_are_the_same_after_normalising() -> None:
    """Ivy puts the organisation before the name; the lock knows only the name."""
    normalised = functools.partial(jars.normalised_name, DEFAULT)

    assert normalised("org.apache.kafka_kafka_2.13-4.3.1.jar") == "kafka_2.13-4.3.1.jar"
    assert normalised("org.scala-lang_scala-reflect-2.13.18.jar") == "scala-reflect-2.13.18.jar"
    assert normalised("kafka_2.13-4.3.1.jar") == "kafka_2.13-4.3.1.jar"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"EOS_MIRROR_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/eos-mirror"),
        ({"HOME": "/h"}, "/h/.cache/eos-mirror"),
    ],
)
def test_the_cache_folder_follows_ours_then_the_desktop_standard(
    environ: dict[str, str], expected: str
) -> None:
    """EOS_MIRROR_CACHE wins over XDG_CACHE_HOME, which wins over the home folder."""
    assert jars.cache_folder(environ) == Path(expected)


@pytest.mark.usefixtures("small_lock")
def test_jars_are_fetched_once(tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call finds them in the cache and fetches nothing."""
    path = install_maven(tmp_path / "bin", GOOD_MAVEN + f"echo >> {tmp_path}/calls\n")
    monkeypatch.setenv("PATH", path["PATH"])

    folders = {jars.ensure_jars(DEFAULT, java, cache=tmp_path / "cache") for _ in range(2)}

    assert folders == {tmp_path / "cache" / "kafka-4.3.1"}
    assert (tmp_path / "calls").read_text(encoding="utf-8") == "\n"
    assert {jar.name for jar in folders.pop().iterdir()} == CONTENT.keys()


@pytest.mark.usefixtures("small_lock")
@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo '[ERROR] Could not resolve'; exit 1", "mvn could not fetch it: check the network"),
        (GOOD_MAVEN + "printf other > $out/kafka_2.13-4.3.1.jar", "kafka_2.13-4.3.1.jar has the"),
        ("printf kafka > $out/kafka_2.13-4.3.1.jar", "scala-library-2.13.18.jar was not fetched"),
    ],
)
def test_a_bad_fetch_is_one_line_and_leaves_nothing(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch, script: str, complaint: str
) -> None:
    """Neither a failed fetch nor a wrong or missing jar ever fills the cache."""
    monkeypatch.setenv("PATH", install_maven(tmp_path / "bin", script)["PATH"])

    with pytest.raises(NotInstalled, match=complaint) as caught:
        jars.ensure_jars(DEFAULT, java, cache=tmp_path / "cache")

    assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".fetch"]


@pytest.mark.usefixtures("small_lock")
def test_without_maven_pyspark_fetches_and_gives_scala_library(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ivy's names are normalised, and the jar that Spark does not fetch comes from PySpark."""
    spark = tmp_path / "pyspark"
    (spark / "bin").mkdir(parents=True)
    (spark / "jars").mkdir()
    (spark / "jars" / "scala-library-2.13.18.jar").write_bytes(b"scala")
    submit = spark / "bin" / "spark-submit"
    submit.write_text(
        '#!/bin/sh\nfor a; do case "$a" in spark.jars.ivy=*) ivy=${a#*=};; esac; done\n'
        "mkdir -p $ivy/jars; printf kafka > $ivy/jars/org.apache.kafka_kafka_2.13-4.3.1.jar\n",
        encoding="utf-8",
    )
    submit.chmod(0o755)
    (spark / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)  # the Spark tests imported it
    monkeypatch.setattr("shutil.which", lambda _: None)

    folder = jars.ensure_jars(DEFAULT, java, cache=tmp_path / "cache")

    assert {jar.name: jar.read_bytes() for jar in folder.iterdir()} == CONTENT
