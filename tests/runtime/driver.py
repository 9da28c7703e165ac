"""A small driver that a test can kill: prints the pids of its tasks and sleeps."""

import signal
import sys

from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.local import LocalLauncher
from eos_mirror.runtime.spark import SparkRuntime
from tests.runtime.toolbox import Stage, started_pid

STARTS_IN_S = 60.0
"""A job of Spark on a busy machine."""


def main(runtime: str, *entries: str) -> None:
    """Start one task per entry, as child processes or as Spark jobs."""
    launcher: Launcher = LocalLauncher()
    if runtime == "spark":
        spark = SparkRuntime.start({}, app="driver", tasks_count=len(entries))
        launcher = spark.launcher("A->B")
    stage = Stage()
    herd = stage.herd(*entries, launcher=launcher)
    for slot in range(len(entries)):
        sys.stdout.write(f"{started_pid(herd, slot, within_s=STARTS_IN_S)}\n")
        sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
