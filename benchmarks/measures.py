"""What each verb measures: the ways and the peers that take turns, after a warm-up."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import cells, peers
from benchmarks.contest import Contest, take_turns, tried
from benchmarks.delay import delayed
from benchmarks.first import measure_first
from benchmarks.killed import measure_kill
from benchmarks.labels import Copied, Many
from benchmarks.latency import measure_latency
from benchmarks.partitions import measure_partitions
from benchmarks.peers import Peer
from benchmarks.throughput import two_clusters
from eos_mirror.core.side import Side
from eos_mirror.testing import Security

WARM_UP_INTERVAL_MS = 1
"""
Commits that follow each other fast: the JVM of a new broker needs thousands of transactions to
compile what a broker in service compiled long ago.
"""
WARM_UP_SHARE = 0.3
"""
Share of the first cell's records that a warm-up copies: with so many commits, a record takes far
longer than in a round.
"""

Results = dict[str, dict[str, list[dict[str, Any]]]]
"""Figures of each round, by cell or load and then by peer."""
Measure = Callable[[Contest, argparse.Namespace], Iterator[Results]]
"""Yields the results of one cell, or of all ways that take turns, when they are complete."""


@contextmanager
def opened(args: argparse.Namespace, folder: Path) -> Iterator[Contest]:
    """Start the clusters that a verb needs, with proxies in front of them if one is far away."""
    security = Security.TLS if getattr(args, "tls", False) else Security.PLAINTEXT
    far = [Side(name) for name in getattr(args, "far", ())]
    with two_clusters(security=security, proxied=bool(far)) as (source, target):
        at = {Side.SOURCE: source, Side.TARGET: target}
        ports = [port for side in far for port in at[side].proxy_ports.values()]
        distant = {side: at[side].proxied_bootstrap for side in far}
        with delayed(ports, one_way_ms=getattr(args, "ms", 0) / 2):
            yield Contest(source=source, target=target, folder=folder, distant=distant)


def copies(contest: Contest, args: argparse.Namespace) -> Iterator[Results]:
    """Let the peers copy the topic of each cell."""
    first, *others = chosen(args)
    if others and args.rounds > 1:
        # The JVM of a new broker compiles during the first copies; no round must include that.
        cell = cells.CELLS[args.cells[0]].shortened(args.share * WARM_UP_SHARE)
        with contest.topics(cell, others):
            for peer in others:
                _warm_up(contest, peer, cell)
    for name in args.cells:
        cell = cells.CELLS[name].shortened(args.share)
        label = f"{name}-tls" if args.tls else name
        with contest.topics(cell, chosen(args)):
            # The first copy of a size pays for fresh memory; no round must include that.
            _warm_up(contest, first, cell)
            ways = {
                str(Copied(label, interval_ms, tasks)): partial(
                    contest.copy, cell=cell, interval_ms=interval_ms, tasks=tasks
                )
                for interval_ms, tasks in product(args.intervals, args.tasks)
            }
            yield take_turns(ways, chosen(args), args.rounds)


def _warm_up(contest: Contest, peer: Peer, cell: cells.Cell) -> None:
    warm_up = partial(contest.warm_up, cell=cell, interval_ms=WARM_UP_INTERVAL_MS)
    tried(peer, warm_up, "warm-up")


def distances(contest: Contest, args: argparse.Namespace) -> Iterator[Results]:
    """Let the peers copy one partition of a cluster that is far away, or to one."""
    cell = cells.CELLS[cells.DISTANT].shortened(args.share)
    with contest.topics(cell, chosen(args)):
        for peer in chosen(args):
            _warm_up(contest, peer, cell)
        ways: Mapping[str, Callable[[Peer], dict[str, Any]]] = {
            f"{cell.name}, {name} after {args.ms} ms round trips": partial(
                contest.copy, cell=cell, far=Side(name), tasks=1
            )
            for name in args.far
        }
        yield take_turns(ways, chosen(args), args.rounds)


def latencies(contest: Contest, args: argparse.Namespace) -> Iterator[Results]:
    """Measure the latency under each load."""
    warming = chosen(args) if args.rounds > 1 else chosen(args)[:1]
    warm_up = partial(measure_latency, contest, rate=args.rates[0], tasks=args.tasks[0])
    for peer in warming:  # the JVM of a new broker compiles during the first copies
        tried(peer, warm_up, "warm-up")
    ways = {
        f"{rate} records a second, tasks: {tasks}": partial(
            measure_latency, contest, rate=rate, tasks=tasks
        )
        for rate, tasks in product(args.rates, args.tasks)
    }
    yield take_turns(ways, chosen(args), args.rounds)


def many_partitions(contest: Contest, args: argparse.Namespace) -> Iterator[Results]:
    """Measure topics of many partitions."""
    ways = {
        str(Many(count, args.rate)): partial(
            measure_partitions, contest, partitions=count, rate=args.rate
        )
        for count in args.partitions
    }
    yield take_turns(ways, chosen(args), args.rounds)


def starts(contest: Contest, args: argparse.Namespace) -> Iterator[Results]:
    """Measure how long it takes from a start to the first record."""
    tried(chosen(args)[0], partial(measure_first, contest), "warm-up")
    yield take_turns({"start": partial(measure_first, contest)}, chosen(args), args.rounds)


def kills(contest: Contest, args: argparse.Namespace) -> Iterator[Results]:
    """Measure how long nothing is copied after SIGKILL of everything."""
    label = f"killed under {args.rate} records a second"
    ways = {label: partial(measure_kill, contest, rate=args.rate)}
    yield take_turns(ways, chosen(args), args.rounds)


def chosen(args: argparse.Namespace) -> list[Peer]:
    """Return the peers of a command line."""
    return [peers.PEERS[name] for name in args.peers]
