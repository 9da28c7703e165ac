"""Runs the real MirrorMaker 2 of Apache Kafka."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from eos_mirror.testing.installation import find_installation, logging_flag

MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
COPIES_WITHIN = timedelta(seconds=180)
"""Its JVM starts three herders and as many connectors before the first copy, beside other tests."""

LAST_LINES = 30


@contextmanager
def running_mm2(file: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """
    Run MirrorMaker 2 for the length of the block; then stop it with SIGTERM, if it lives.

    The last lines of its log are a note of whatever the block raises.
    """
    installation = find_installation()
    logging = logging_flag(installation, level="WARN", stream="SYSTEM_ERR")
    flags = ["-XX:TieredStopAtLevel=1", logging]
    with log.open("wb") as out:
        process = subprocess.Popen(
            installation.command(MIRROR_MAKER, str(file), flags=flags), stdout=out, stderr=out
        )
    try:
        yield process
    except BaseException as error:
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        error.add_note("\n".join([f"last lines of {log}:", *lines]))
        raise
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()
