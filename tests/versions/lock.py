"""
Writes the lock of a release of Kafka: `python -m tests.versions.lock 4.4.0`.

Maven fetches the jars. Add the release to `eos_mirror/testing/releases.py` first, and check the
result before it is committed: what is in the lock is trusted from then on.
"""

import argparse
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

import eos_mirror.testing
from eos_mirror.testing.jars import fetch_with_maven, lock_name
from eos_mirror.testing.java import find_java
from eos_mirror.testing.releases import RELEASES, find_release


def lock_of(folder: Path) -> str:
    """Return a line for each jar of a folder: its name, size and sha256."""
    return "".join(
        f"{jar.name} {jar.stat().st_size} {hashlib.sha256(jar.read_bytes()).hexdigest()}\n"
        for jar in sorted(folder.iterdir())
    )


def main() -> int:
    """Write the lock, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.lock", description=__doc__)
    parser.add_argument("version", choices=sorted({one.version for one in RELEASES}))
    release = find_release(parser.parse_args().version)
    maven = shutil.which("mvn")
    if maven is None:
        parser.error("put `mvn` on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        jars = Path(folder) / "jars"
        jars.mkdir()
        fetch_with_maven(release, Path(maven), find_java(), jars)
        path = Path(eos_mirror.testing.__file__).with_name(lock_name(release))
        path.write_text(lock_of(jars), encoding="utf-8")
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
