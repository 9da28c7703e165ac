"""Which lane a peer used, and how many records its own lane passed through in whole batches."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import Peer
from benchmarks.steady import spread

COUNTERS: Final[Mapping[str, Callable[[Any], int]]] = {
    "records": int,
    "passed": int,
    "decoded": lambda by_reason: sum(by_reason.values()),
}
"""Fields of `flow.summary` that are summed, and how; the last two are of our own lane."""
WORDS = {"auto": "our own lane", "client": "the client library"}


def lane_figures(peer: Peer, log: Path) -> dict[str, Any]:
    """Return the lane of a peer that has exited, and its counters; nothing of other programs."""
    if peer.data_path is None:
        return {}
    return {"lane": peer.data_path, "lane_counts": _counts(log)}


def _counts(log: Path) -> dict[str, int]:
    sums: dict[str, int] = {}
    for line in log.read_text(errors="replace").splitlines():
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and event.get("event") == "flow.summary":
                for name, count in COUNTERS.items():
                    if name in event:
                        sums[name] = sums.get(name, 0) + count(event[name])
    return sums


def lane_lines(of_cell: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield a line for each peer that says which lane it used, if the rounds know it."""
    for peer, rounds in of_cell.items():
        lanes = dict.fromkeys(one["lane"] for one in rounds if "lane" in one)
        for lane in lanes:
            yield ""
            yield f"{peer}: `data.path = {lane}`, {WORDS[lane]}{_share(rounds)}."


def _share(rounds: Sequence[Mapping[str, Any]]) -> str:
    shares = []
    for one in rounds:
        counts = one.get("lane_counts", {})
        if total := counts.get("passed", 0) + counts.get("decoded", 0):
            shares.append(100 * counts.get("passed", 0) / total)
    return f"; {spread(shares, '.1f')} % of the records in batches that it passed" if shares else ""
