"""`eos-mirror status FILE [A->B]`: prints the lag of flows and groups, and the ledger."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence, Set
from functools import partial
from itertools import groupby
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.cli.status_groups import group_view
from eos_mirror.cli.status_rows import entry_row, lag_of, overview, topic_row
from eos_mirror.cli.status_watch import EVERY_S, seconds, watch
from eos_mirror.cli.terminal import lines_of
from eos_mirror.cli.views import Answer, Line, Piece, Row, Tone, View, line, plain, state
from eos_mirror.core.ledger import LedgerEntry
from eos_mirror.core.paths_report import PathsReport
from eos_mirror.core.plural import counted
from eos_mirror.core.side import Side
from eos_mirror.core.states import ORDERED, WRONG, Condition, State, counted_states
from eos_mirror.driver.first_contact import BOTH, reach_clusters
from eos_mirror.errors import ClustersSilent
from eos_mirror.operate.flow_run import Runs, runs_now
from eos_mirror.operate.partition_status import PartitionStatus
from eos_mirror.operate.status import FlowStatus, flow_status, ledger_entries
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.model import FlowSettings

NEXT_SYNC = "the next sync does that"


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("status", help="show state and lag of flows, or the ledger")
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B", nargs="?", help="one flow (default: all)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--ledger", action="store_true", help="show the ledger: events besides copying, in order"
    )
    instead.add_argument(
        "--groups", action="store_true", help="show where each source group can resume"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=seconds,
        const=EVERY_S,
        metavar="SECONDS",
        help=f"show it again and again, until Ctrl-C (every {EVERY_S:g} s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code; `main` prints errors."""
    if args.watch is not None:
        settings_of(args.file)  # a mistake in the file is reported before anything starts
        return watch(
            partial(_answers, args), every_s=args.watch, title=_title(args), as_data=args.json
        )
    code = 0
    for number, answer in enumerate(_parts(args)):
        view, follows = answer.view, number > 0
        lines = plain(view) if args.json else lines_of(view, sys.stdout, follows=follows)
        sys.stdout.writelines(f"{one}\n" for one in lines)
        code = max(code, answer.code)
    return code


def _title(args: argparse.Namespace) -> str:
    return " ".join(filter(None, ["eos-mirror status", args.file, args.flow]))


def _answers(args: argparse.Namespace) -> list[Answer]:
    """Return all parts, the overview first: the end may not fit on the screen."""
    return sorted(_parts(args), key=lambda one: not one.is_overview)


def _parts(args: argparse.Namespace) -> Iterator[Answer]:
    """
    Yield the answer for each flow; if there are several, then an overview on a terminal.

    Raises:
        ClustersSilent: Clusters do not answer. What is known of the flows comes before it.
    """
    settings = settings_of(args.file)
    flows = [flow_named(settings, args.flow)] if args.flow else settings.flows
    failure = None
    try:
        reach_clusters(settings, flows, needed=[Side.TARGET] if args.ledger else BOTH)
    except ClustersSilent as exc:
        if args.ledger or args.groups:
            raise
        failure = exc
    statuses = []
    for flow in flows:
        if args.ledger:
            yield Answer(view=list(_ledger(flow, as_json=args.json)))
        elif args.groups:
            yield Answer(view=list(group_view(flow, as_json=args.json)))
        elif failure and not failure.aliases.isdisjoint((flow.flow.source, flow.flow.target)):
            yield _hidden(flow, failure.aliases, as_json=args.json)
        else:
            status = flow_status(flow, beside=[one for one in settings.flows if one is not flow])
            statuses.append(status)
            view: View = [_as_json(status)] if args.json else list(_as_text(status))
            yield Answer(view=view, code=int(status.state in WRONG))
    if failure:
        raise failure
    if len(statuses) > 1:
        yield Answer(view=overview(statuses), is_overview=True)


def _hidden(settings: FlowSettings, silent: Set[str], *, as_json: bool) -> Answer:
    """Return what is known of a flow while one of its clusters does not answer: who runs it."""
    flow, of_this_file = settings.flow, fingerprint(settings)
    away = [one for one in (flow.source, flow.target) if one in silent]
    why = f"{' and '.join(away)} {'do' if len(away) > 1 else 'does'} not answer"
    runs = Runs(None, 0) if flow.target in silent else runs_now(settings)
    if as_json:
        known = {"flow": str(flow), "state": State.UNKNOWN.value, "reason": why}
        return Answer(view=[json.dumps({**known, "run": _run_object(runs, of_this_file)})])
    first = line(f"{flow}: ", state(State.UNKNOWN), f", {why}")
    return Answer(view=[first, *_run_lines(runs, of_this_file)])


def _as_json(status: FlowStatus) -> str:
    return json.dumps(
        {
            "flow": status.flow,
            "state": status.state.value,
            "mode": status.mode.value if status.mode else None,
            "run": _run_object(status.run.runs, status.fingerprint),
            "lag": status.lag,
            "written": _written_object(status.run.written),
            "partitions": [
                {
                    "source": str(one.source),
                    "remote": str(one.remote),
                    **_state_object(one.condition),
                    "position": one.position,
                    "end": one.end,
                    "lag": one.lag,
                    "replaced": one.was_replaced,
                    "open_transaction": _open_transaction(one),
                }
                for one in status.partitions
            ],
            "drift": None
            if status.drift is None
            else {
                topic: {"set": dict(changes.set), "delete": list(changes.delete)}
                for topic, changes in status.drift.items()
            },
            "limits": [{"topic": topic, **order.fields} for topic, order in status.limits.items()],
            "refused": status.refused,
            "left_out": list(status.left_out),
            "deleted": dict(status.deleted),
        }
    )


def _state_object(condition: Condition) -> dict[str, Any]:
    fault = condition.fault
    return {
        "state": condition.state.value,
        "cause": fault.cause if fault else "",
        "reason": condition.reason,
        "since": fault.since.isoformat() if fault and fault.since else None,
    }


def _run_object(runs: Runs, of_this_file: str) -> dict[str, Any] | None:
    leader = runs.leader
    if leader is None:
        return None
    return {
        "host": leader.host,
        "pid": leader.pid,
        "since": leader.started_at.isoformat(),
        "version": leader.version,
        "fingerprint": leader.fingerprint,
        "is_of_this_file": leader.fingerprint == of_this_file,
        "standbys": runs.standbys,
    }


def _written_object(written: PathsReport | None) -> dict[str, Any] | None:
    if written is None:
        return None
    return {"passed": written.passed, "decoded": dict(written.decoded)}


def _open_transaction(one: PartitionStatus) -> dict[str, Any] | None:
    found = one.open_transaction
    if found is None:
        return None
    began_at = found.began_at.isoformat() if found.began_at else None
    return {"since": found.since, "hidden": found.hidden, "began_at": began_at}


def _as_text(status: FlowStatus) -> Iterator[str | Line | Row]:
    mode = status.mode.value if status.mode else "never ran"
    count = counted(len(status.partitions), "partition")
    about = f", {mode}, {count}, {_lag(status.partitions)}"
    yield line(f"{status.flow}: ", state(status.state), about)
    yield from _run_lines(status.run.runs, status.fingerprint)
    yield from _written_lines(status.run.written)
    for limited, order in status.limits.items():
        yield f"  {limited or 'all topics together'}: limited to {order}"
    for topic, group in groupby(status.partitions, key=lambda one: one.source.topic):
        partitions = list(group)
        states = counted_states(one.condition.state for one in partitions)
        about = f"{counted(len(partitions), 'partition')}, {_lag(partitions)}: {states}"
        yield topic_row(topic, partitions, text=f"  {topic}: {about}")
        ordered = (one for one in partitions if one.condition.state in ORDERED)
        if (first := next(ordered, None)) is not None:
            yield f"  {topic}: {first.condition.reason}"
        yield from _partition_lines(partitions)
    sync = NEXT_SYNC if status.syncs_configs else "sync.topic.configs.enabled is false"
    for remote, changes in (status.drift or {}).items():
        wanted = [f"{name} should be {value}" for name, value in sorted(changes.set.items())]
        wanted += [f"{name} should not be set" for name in changes.delete]
        different = Piece("is not as its source topic", Tone.WARNING)
        yield line(f"  {remote} ", different, f": {', '.join(wanted)} ({sync})")
    for reason in dict.fromkeys(status.refused.values()):  # once for several topics with one name
        yield line("  ", Piece("not mirrored", Tone.BAD), f": {reason}")
    if status.left_out:
        yield f"  not mirrored back to where they came from: {', '.join(status.left_out)}"
    for topic, remote in status.deleted.items():
        yield f"  {topic}: deleted on the source; its copy {remote} stays"


def _run_lines(runs: Runs, of_this_file: str) -> Iterator[str | Line]:
    leader = runs.leader
    if leader is None:
        return
    since = f"since {leader.started_at:%Y-%m-%d %H:%M:%S} UTC"
    standby = f", {runs.standbys} on standby" if runs.standbys else ""
    yield f"  run: {leader}, {since}, version {leader.version}{standby}"
    if leader.fingerprint != of_this_file:
        different = Piece("another configuration than this file", Tone.WARNING)
        yield line("  the run was started with ", different, ": `reload` it, or restart")


def _written_lines(written: PathsReport | None) -> Iterator[str]:
    if written is None or not written.records:
        return
    share = f"{100 * written.passed / written.records:.1f} %"
    decoded = ", ".join(f"{why} {count:,}" for why, count in written.decoded.items())
    others = f"; decoded: {decoded}" if decoded else ""
    yield f"  passed through: {share} of {written.records:,} records since its start{others}"


def _partition_lines(partitions: Sequence[PartitionStatus]) -> Iterator[Line]:
    """Yield a line for each partition with a reason. States without one are only counted."""
    for one in partitions:
        condition, fault = one.condition, one.condition.fault
        if fault is not None:
            since = f" since {fault.since:%Y-%m-%d %H:%M:%S} UTC" if fault.since else ""
            about = f"{since} ({fault.cause}): {fault.reason}"
            yield line(f"  {one.source}: ", Piece("failed", Tone.BAD), about)
        elif condition.state in {State.WAITING, State.UNKNOWN}:
            yield line(f"  {one.source}: ", state(condition.state), f": {condition.reason}")
        if one.open_transaction and str(one.open_transaction) != condition.reason:
            yield line(f"  {one.source}: {one.open_transaction}")


def _lag(partitions: Sequence[PartitionStatus]) -> str:
    return f"lag {lag_of(partitions)}"


def _ledger(settings: FlowSettings, *, as_json: bool) -> Iterator[str | Row]:
    entries = ledger_entries(settings)
    if as_json:
        for entry in entries:
            yield json.dumps({"flow": str(settings.flow), **json.loads(entry.encode())})
        return
    yield f"{settings.flow}: {_count(entries)}"
    for entry in entries:
        details = ", ".join(f"{name} {value}" for name, value in entry.details.items())
        text = f"  {entry.at.isoformat(timespec='seconds')} {entry.kind.value:5} {details}"
        yield entry_row(entry, details=details, text=text)


def _count(entries: Sequence[LedgerEntry]) -> str:
    return f"{len(entries)} entries" if len(entries) != 1 else "1 entry"
