"""
Asks the master of a standalone Spark cluster how many tasks it has room for.

Its page for people also exists as JSON, and is on another port than the master itself.
"""

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

from eos_mirror.errors import ConfigError

SCHEME = "spark://"
PAGE_PORT = "spark.master.ui.port"
PAGE_PORT_DEFAULT = "8080"
PAGE = "/json/"
ALIVE = "ALIVE"
UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
"""Megabytes in Spark's units. A number without a unit has megabytes."""


class Address(NamedTuple):
    """Where a master listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a living worker has left."""

    free_cores: int
    free_memory_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterPage:
    """
    What a master says of its cluster.

    Attributes:
        cores: Cores of all living workers.
        ours: Cores of running applications with our name: this flow's own run, or another one.
    """

    workers: Sequence[Worker]
    cores: int
    ours: int


def check_master(
    settings: Mapping[str, str], *, tasks_count: int, app: str, within: timedelta
) -> str:
    """
    Check that a standalone master answers, and has a free slot for every task.

    Args:
        settings: Complete `spark.*`. Another kind of master is not asked.
        app: Name of our applications. A run of this configuration may hold cores that a restart
            frees, so cores of applications with this name only lead to a warning.
        within: How long to wait for an answer.

    Returns:
        A warning in one line; empty if there is none.

    Raises:
        ConfigError: The master does not answer, or has too few free cores.
    """
    master = settings["spark.master"]
    if not master.startswith(SCHEME):
        return ""
    addresses = _addresses(master)
    _reach(master, addresses, within)
    ui_port = settings.get(PAGE_PORT, PAGE_PORT_DEFAULT)
    if not ui_port.isdecimal():
        raise ConfigError(f"{PAGE_PORT}={ui_port}: must be a number")
    pages = [_page(one, ui_port, app, within) for one in addresses]
    page = next((one for one in pages if one is not None), None)
    if page is None:
        asked = ", ".join(f"http://{one.host}:{ui_port}{PAGE}" for one in addresses)
        return (
            f"spark.master={master}: its free cores are unknown, because its page does not answer "
            f"at {asked}. Set {PAGE_PORT} to the port of the page"
        )
    return _judged(page, settings, tasks_count=tasks_count, app=app)


def _judged(page: MasterPage, settings: Mapping[str, str], *, tasks_count: int, app: str) -> str:
    """Compare the free slots with the tasks; see `check_master`."""
    slots = free_slots(page, settings)
    if slots >= tasks_count:
        return ""
    per_task = _cores_per_task(settings)
    free = sum(worker.free_cores for worker in page.workers)
    memory = settings.get("spark.executor.memory", "1g")
    text = (
        f"spark.master={settings['spark.master']} has {free} of {page.cores} cores free, so it has "
        f"slots for {slots} of {tasks_count} tasks (tasks.max; spark.task.cpus={per_task:g}, "
        f"spark.executor.memory={memory})"
    )
    if slots + int(page.ours / per_task) >= tasks_count:
        return (
            f"{text}. Running applications named {app} hold {page.ours} cores: if that is not the "
            f"run of this configuration, stop it first"
        )
    raise ConfigError(
        f"{text}: a task without a slot waits indefinitely. Stop another application, add workers, "
        f"or lower tasks.max or spark.task.cpus"
    )


def free_slots(page: MasterPage, settings: Mapping[str, str]) -> int:
    """
    Return how many tasks can start now.

    Without `spark.executor.cores`, an executor takes all free cores of its worker.
    """
    per_task = _cores_per_task(settings)
    memory_mb = megabytes(settings.get("spark.executor.memory", "1g"))
    wanted = settings.get("spark.executor.cores")
    most = settings.get("spark.cores.max")
    left = int(most) if most else page.cores
    slots = 0
    for worker in page.workers:
        cores_each = int(wanted) if wanted else min(worker.free_cores, left)
        if not cores_each:
            continue
        executors = min(worker.free_cores, left) // cores_each
        fit = worker.free_memory_mb // max(1, memory_mb)
        executors = min(executors, fit if wanted else min(fit, 1))
        left -= executors * cores_each
        slots += executors * int(cores_each / per_task)
    return slots


def megabytes(size: str) -> int:
    """Return a size in Spark's notation, such as `512m` or `2g`, in megabytes."""
    text = size.strip().lower().removesuffix("b")
    unit = UNITS.get(text[-1:], 0)
    number = text[:-1] if unit else text
    return int(float(number) * (unit or 1))


def _cores_per_task(settings: Mapping[str, str]) -> float:
    return float(settings.get("spark.task.cpus", "1"))


def _addresses(master: str) -> list[Address]:
    """Return the addresses of a master and of its standbys."""
    found = []
    for one in master.removeprefix(SCHEME).split(","):
        host, _, port = one.strip().rpartition(":")
        if not (host and port.isdecimal()):
            raise ConfigError(f"spark.master={master}: must be {SCHEME}HOST:PORT[,HOST:PORT...]")
        found.append(Address(host.strip("[]"), int(port)))
    return found


def _reach(master: str, addresses: Sequence[Address], within: timedelta) -> None:
    """Connect to one of the addresses; raise if none accepts the connection."""
    reasons = []
    for one in addresses:
        try:
            socket.create_connection(one, within.total_seconds()).close()
        except OSError as exc:
            reasons.append(f"{one.host}:{one.port}: {exc.strerror or exc}")
        else:
            return
    raise ConfigError(
        f"spark.master={master}: no Spark master answers at {'; '.join(reasons)}. Start it, or "
        f"correct spark.master"
    )


def _page(master: Address, ui_port: str, app: str, within: timedelta) -> MasterPage | None:
    """Return the page of a master; None if it does not answer, is another's, or is on standby."""
    connection = HTTPConnection(master.host, int(ui_port), timeout=within.total_seconds())
    try:
        connection.request("GET", PAGE)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        if found["status"] != ALIVE or not found["url"].endswith(f":{master.port}"):
            return None
        return _read_page(found, app)
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


def _read_page(found: Mapping[str, Any], app: str) -> MasterPage:
    return MasterPage(
        workers=[
            Worker(free_cores=one["coresfree"], free_memory_mb=one["memoryfree"])
            for one in _living(found)
        ],
        cores=sum(one["cores"] for one in _living(found)),
        ours=sum(one["cores"] for one in found["activeapps"] if one["name"] == app),
    )


def _living(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (one for one in found["workers"] if one["state"] == ALIVE)
