"""
CPU time and memory of processes, and the CPU time of the whole machine, read from /proc.

Linux only. A process that has exited counts 0.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BUSY_FIELDS = (1, 2, 3, 6, 7)
"""user, nice, system, irq, softirq of the first line of /proc/stat."""
STEAL_FIELD = 8
PARENT, UTIME, STIME = 1, 11, 12
"""Fields that follow the command in /proc/<pid>/stat."""


class Memory(NamedTuple):
    """
    Resident memory in MB (10^6 bytes).

    Attributes:
        pss: Counts its share of pages that it shares with any other process: a lower bound.
        rss: Counts shared pages in full for every process: an upper bound.
    """

    pss: float
    rss: float


NOTHING = Memory(pss=0.0, rss=0.0)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of all threads of a process since it started."""
    fields = _stat(pid)
    return (int(fields[UTIME]) + int(fields[STIME])) / TICKS_PER_S if fields else 0.0


def machine_cpu_s() -> tuple[float, float]:
    """Return the busy CPU seconds, and those that the hypervisor gave to other guests (steal)."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    busy = sum(int(fields[i]) for i in BUSY_FIELDS)
    return busy / TICKS_PER_S, int(fields[STEAL_FIELD]) / TICKS_PER_S


def peak_rss_mb(pid: int) -> float:
    """Return the highest resident set since the process started, in MB (10^6 bytes)."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def memory_mb(pid: int) -> Memory:
    """Return the current memory of one process."""
    found = {"Pss": 0.0, "Rss": 0.0}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024 / 1e6
    return Memory(pss=found["Pss"], rss=found["Rss"])


def descendants(pid: int) -> list[int]:
    """Return every descendant of this process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[PARENT]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def tree_memory_mb(driver: int, tasks: Iterable[int]) -> dict[str, Memory]:
    """Return the memory of a driver and everything it started, by role; `tree` is the sum."""
    roles = dict.fromkeys(("tree", "driver", "jvm", "tasks", "other"), NOTHING)
    for pid in [driver, *descendants(driver)]:
        role = "tasks" if pid in tasks else "jvm" if _is_java(pid) else "other"
        used = memory_mb(pid)
        for name in ("tree", "driver" if pid == driver else role):
            roles[name] = Memory(pss=roles[name].pss + used.pss, rss=roles[name].rss + used.rss)
    return roles


def _is_java(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    return False


def _stat(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []
