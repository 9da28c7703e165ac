"""A running mirror, and what an operator sees of it in four places at the same time."""

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from eos_mirror.testing import wait_until
from tests.mirror.command_line import CONFIGURATION, ends, status_and_code, verb
from tests.mirror.conftest import Site
from tests.mirror.toolbox import Mirror, mirror
from tests.rest.client import Client

SOON_S = 60.0
LOOK_S = 0.1
"""Between two looks: without a pause, they take a processor from the run that they look at."""

SEEN_BY_THE_RUN: Mapping[str, object] = {
    "listeners": "http://127.0.0.1:0",
    "metrics_exporters": "prometheus",
    "metrics_listener": "127.0.0.1:0",
    "refresh_topics_interval_seconds": 1,
    "session_timeout_ms": 6_000,
}
_SERIES = re.compile(r"^eos_mirror_partition_state(?:_ratio)?\{(.*)\} 1(?:\.0)?$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Seen:
    """
    What an operator sees.

    Attributes:
        state: Of the flow, in `status` and over HTTP.
        partition: State of the first partition of the topic; empty: not looked at.
        cause: Class of the error of that partition.
        words: What the reason of that partition, or of the outage, says.
        event: A log event that was written by then, with these fields.
        is_ready: Whether `/ready?strict` says so.
        lag: Least lag of that partition, in `status`.
        of_the_run: State of flow and partition that the run knows, if it cannot know the other.
        away: Alias of a cluster that does not answer: `status` names it, and exits with 2.
    """

    state: str
    partition: str = ""
    cause: str = ""
    words: str = ""
    event: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    is_ready: bool = True
    lag: int = 0
    of_the_run: str = ""
    away: str = ""

    @property
    def code(self) -> int:
        """Exit code of `status`: 1 if a person has to look at it."""
        return int(self.state in {"failed", "unknown", "not running"})


WELL = Seen(state="mirroring", partition="mirroring")


def away(alias: str, words: str = "") -> Seen:
    """Return what is seen while a cluster does not answer; the reason has these words."""
    return Seen(
        state="waiting",
        partition="waiting",
        words=words,
        is_ready=False,
        event="cluster.unreachable",
        fields={"cluster": alias},
        away=alias,
    )


class Stage:
    """One flow with one topic, and its run."""

    def __init__(self, site: Site, config: Path, running: Mirror) -> None:
        self.site = site
        self.config = config
        self.running = running
        self.client = Client(running.wait_for("rest.listening")["address"])

    def verb(self, name: str, *arguments: str) -> None:
        """Run a verb on the flow; it returns when the run has done it."""
        verb(name, self.config, self.site, *arguments)

    def shows(self, wanted: Seen) -> None:
        """Wait until everything that an operator can look at says so."""
        if wanted.event:
            wait_until(
                lambda: self._is_logged(wanted),
                within=timedelta(seconds=SOON_S),
                what=f"{wanted.event} {wanted.fields} {wanted.words!r}",
            )
        for place in (self._status, self._http, self._metrics):
            _wait(lambda place=place: place(wanted))  # type: ignore[misc]

    def _is_logged(self, wanted: Seen) -> bool:
        logged = self.running.found(wanted.event, **wanted.fields)
        return any(wanted.words in event.get("reason", "") for event in logged)

    def _status(self, wanted: Seen) -> str:
        if wanted.away:
            code, text, lines = ends("status", str(self.config))
            words = (f"cluster {wanted.away} ", wanted.words)
            is_named = code == CONFIGURATION and all(one in "".join(lines) for one in words)
            is_run_shown = wanted.away == self.site.flow.target or "\n  run: " in text
            is_unknown = text.startswith(
                f"{self.site.flow}: unknown, {wanted.away} does not answer"
            )
            return "" if is_named and is_unknown and is_run_shown else f"status: {text}{lines}"
        text, code = status_and_code(self.config, "--json")
        flow = json.loads(text)
        if (flow["state"], code) != (wanted.state, wanted.code):
            return f"status: {flow}"
        one = next((p for p in flow["partitions"] if p["source"] == f"{self.site.topic}-0"), None)
        if not wanted.partition:
            return ""
        if one is None or (one["state"], one["cause"]) != (wanted.partition, wanted.cause):
            return f"status: {one or flow}"
        if wanted.words not in one["reason"] or (one["lag"] or 0) < wanted.lag:
            return f"status: {one}"
        return ""

    def _http(self, wanted: Seen) -> str:
        flow = f"/mirror/flows/{self.site.flow.source}-%3E{self.site.flow.target}"
        code, answer = self.client.ask(flow)
        if (code, answer["state"]) != (200, wanted.of_the_run or wanted.state):
            return f"HTTP: {answer}"
        code, ready = self.client.ask("/ready?strict")
        if (code == 200) is not wanted.is_ready:
            return f"HTTP: {ready}"
        if not wanted.partition:
            return ""
        one = self.client.ask(f"{flow}/topics/{self.site.topic}")[1]["partitions"][0]
        known = one["state"], one.get("cause", "")
        is_said = bool(wanted.of_the_run) or wanted.words in one.get("reason", "")
        return "" if is_said and known == self._known(wanted) else f"HTTP: {one}"

    def _metrics(self, wanted: Seen) -> str:
        if not wanted.partition:
            return ""
        with urllib.request.urlopen(f"{self.client.address}/metrics", timeout=10) as page:  # noqa: S310
            text = page.read().decode()
        rows = [dict(_LABEL.findall(labels)) for labels in _SERIES.findall(text)]
        mine = [
            (row["state"], row.get("cause", ""))
            for row in rows
            if (row["topic"], row["partition"]) == (self.site.remote, "0")
        ]
        return "" if mine == [self._known(wanted)] else f"metrics: {mine or rows}"

    def _known(self, wanted: Seen) -> tuple[str, str]:
        """Return state and cause of the partition as the run knows them."""
        return (wanted.of_the_run or wanted.partition, wanted.cause)


def _wait(difference: Callable[[], str]) -> None:
    """Wait until there is no difference; fail with the last one."""
    deadline = time.monotonic() + SOON_S
    while found := difference():
        assert time.monotonic() < deadline, found
        time.sleep(LOOK_S)


@contextmanager
def staged(site: Site, config: Path, *, copied: bool = True) -> Iterator[Stage]:
    """
    Run a mirror that has copied a few records.

    Args:
        copied: False: do not wait until they are copied.
    """
    site.produce(10 * site.partitions)
    with mirror(config) as running:
        stage = Stage(site, config, running)
        if copied:
            running.wait_for("ready")
            site.wait_caught_up()
        yield stage
