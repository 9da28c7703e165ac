"""Runs the real MirrorMaker 2 of Apache Kafka."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eos_mirror.testing.installation import find_installation, log4j_config

MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"


@contextmanager
def running_mm2(file: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run MirrorMaker 2 for the length of the block; then stop it with SIGTERM, if it lives."""
    installation = find_installation()
    log4j = log4j_config(installation, level="WARN", stream="SYSTEM_ERR")
    flags = ["-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log4j}"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            installation.command(MIRROR_MAKER, str(file), flags=flags), stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()
