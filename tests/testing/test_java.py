"""Finding a Java."""

from pathlib import Path

import pytest

from eos_mirror.testing import NotInstalled
from eos_mirror.testing.java import find_java, java_home, java_major


def fake_java(home: Path, version: str) -> Path:
    """Create a `java` that prints this version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return java


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    """A Java in JAVA_HOME is used before one on the PATH."""
    wanted = fake_java(tmp_path / "a", "21.0.1")
    other = fake_java(tmp_path / "b", "17.0.1")

    found = find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(other.parent)})

    assert found == wanted
    assert java_home(found) == tmp_path / "a"


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    """An old JAVA_HOME does not hide a good Java on the PATH."""
    fake_java(tmp_path / "a", "1.8.0_292")
    good = fake_java(tmp_path / "b", "17.0.15")

    assert find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(good.parent)}) == good


def test_without_java_the_message_says_what_to_install(tmp_path: Path) -> None:
    """One line says what is missing, what was found instead and what to install."""
    old = fake_java(tmp_path / "a", "11.0.2")

    with pytest.raises(NotInstalled, match=r"is Java 11.*openjdk-17-jre-headless.*\[java\]") as at:
        find_java({"PATH": str(old.parent)})

    assert "\n" not in str(at.value)


@pytest.mark.parametrize(("version", "major"), [("17", 17), ("25.0.2", 25), ("1.8.0", 8)])
def test_major_versions_are_read(tmp_path: Path, version: str, major: int) -> None:
    """The major version is read, also of Java 8, which calls itself 1.8."""
    assert java_major(fake_java(tmp_path, version)) == major
