"""`eos-mirror status FILE [A->B]`: prints the lag of flows and groups, and the ledger."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.ledger import LedgerEntry
from eos_mirror.core.plural import counted
from eos_mirror.core.side import Side
from eos_mirror.core.states import ORDERED, WRONG, Condition, State, counted_states
from eos_mirror.driver.first_contact import BOTH, reach_clusters
from eos_mirror.operate.group_status import GroupStatus, group_statuses
from eos_mirror.operate.partition_status import PartitionStatus
from eos_mirror.operate.status import FlowStatus, flow_status, ledger_entries
from eos_mirror.settings.model import FlowSettings


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


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code; `main` prints errors."""
    settings = settings_of(args.file)
    flows = [flow_named(settings, args.flow)] if args.flow else settings.flows
    reach_clusters(settings, flows, needed=[Side.TARGET] if args.ledger else BOTH)
    code = 0
    for flow in flows:
        if args.ledger:
            lines = _ledger(flow, as_json=args.json)
        elif args.groups:
            lines = _groups(flow, as_json=args.json)
        else:
            status = flow_status(flow, beside=[one for one in settings.flows if one is not flow])
            code = max(code, int(status.state in WRONG))
            lines = iter([_as_json(status)]) if args.json else _as_text(status)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return code


def _as_json(status: FlowStatus) -> str:
    return json.dumps(
        {
            "flow": status.flow,
            "state": status.state.value,
            "mode": status.mode.value if status.mode else None,
            "run": _run_object(status),
            "lag": status.lag,
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


def _run_object(status: FlowStatus) -> dict[str, Any] | None:
    leader = status.run.leader
    if leader is None:
        return None
    return {
        "host": leader.host,
        "pid": leader.pid,
        "since": leader.started_at.isoformat(),
        "version": leader.version,
        "fingerprint": leader.fingerprint,
        "is_of_this_file": leader.fingerprint == status.fingerprint,
        "standbys": status.run.standbys,
    }


def _open_transaction(one: PartitionStatus) -> dict[str, Any] | None:
    found = one.open_transaction
    if found is None:
        return None
    began_at = found.began_at.isoformat() if found.began_at else None
    return {"since": found.since, "hidden": found.hidden, "began_at": began_at}


def _as_text(status: FlowStatus) -> Iterator[str]:
    mode = status.mode.value if status.mode else "never ran"
    count = counted(len(status.partitions), "partition")
    yield f"{status.flow}: {status.state.value}, {mode}, {count}, {_lag(status.partitions)}"
    yield from _run_lines(status)
    for limited, order in status.limits.items():
        yield f"  {limited or 'all topics together'}: limited to {order}"
    for topic, group in groupby(status.partitions, key=lambda one: one.source.topic):
        partitions = list(group)
        states = counted_states(one.condition.state for one in partitions)
        yield f"  {topic}: {counted(len(partitions), 'partition')}, {_lag(partitions)}: {states}"
        ordered = (one for one in partitions if one.condition.state in ORDERED)
        if (first := next(ordered, None)) is not None:
            yield f"  {topic}: {first.condition.reason}"
        yield from _partition_lines(partitions)
    for remote, changes in (status.drift or {}).items():
        wanted = [f"{name} should be {value}" for name, value in sorted(changes.set.items())]
        wanted += [f"{name} should not be set" for name in changes.delete]
        yield f"  {remote} is not as its source topic: {', '.join(wanted)}"
    for reason in dict.fromkeys(status.refused.values()):  # once for several topics with one name
        yield f"  not mirrored: {reason}"
    if status.left_out:
        yield f"  not mirrored back to where they came from: {', '.join(status.left_out)}"


def _run_lines(status: FlowStatus) -> Iterator[str]:
    leader = status.run.leader
    if leader is None:
        return
    since = f"since {leader.started_at:%Y-%m-%d %H:%M:%S} UTC"
    standby = f", {status.run.standbys} on standby" if status.run.standbys else ""
    yield f"  run: {leader}, {since}, version {leader.version}{standby}"
    if leader.fingerprint != status.fingerprint:
        yield "  the run has another configuration than this file: a restart applies the file"


def _partition_lines(partitions: Sequence[PartitionStatus]) -> Iterator[str]:
    """Yield a line for each partition with a reason. States without one are only counted."""
    for one in partitions:
        condition, fault = one.condition, one.condition.fault
        if fault is not None:
            since = f" since {fault.since:%Y-%m-%d %H:%M:%S} UTC" if fault.since else ""
            yield f"  {one.source}: failed{since} ({fault.cause}): {fault.reason}"
        elif condition.state in {State.WAITING, State.UNKNOWN}:
            yield f"  {one.source}: {condition.state.value}: {condition.reason}"
        if one.open_transaction and str(one.open_transaction) != condition.reason:
            yield f"  {one.source}: {one.open_transaction}"


def _lag(partitions: Sequence[PartitionStatus]) -> str:
    known = [one.lag for one in partitions if one.lag is not None]
    unknown = len(partitions) - len(known)
    if not known and unknown:
        return "lag unknown"
    return f"lag {sum(known):,}" + (f" and unknown of {unknown}" if unknown else "")


def _groups(settings: FlowSettings, *, as_json: bool) -> Iterator[str]:
    groups = group_statuses(settings)
    if as_json:
        for one in groups:
            yield json.dumps({"flow": str(settings.flow), **_group_object(one)})
        return
    header = counted(len(groups), "group")
    yield f"{settings.flow}: {header}, {_counts(groups, str(settings.flow.target))}"
    for one in groups:
        yield f"  {one.group or '(no name)'}: {_group_text(one)}"


def _counts(groups: Sequence[GroupStatus], target: str) -> str:
    """Return the counts of the header. "0 behind" is true only if every group is translated."""
    counts = {
        f"behind on {target}": sum(any(p.is_behind for p in one.partitions) for one in groups),
        "not translated": sum(one.is_untranslated for one in groups),
        "skipped": sum(one.is_skipped for one in groups),
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    is_complete = not (counts[f"behind on {target}"] or counts["not translated"])
    return ", ".join([f"0 behind on {target}", *said] if is_complete else said)


def _group_object(status: GroupStatus) -> dict[str, Any]:
    return {
        "group": status.group,
        "reason": status.reason,
        "partitions": [
            {
                **asdict(one),
                "source": str(one.source),
                "remote": str(one.remote),
                "ahead": one.is_ahead,
                "behind": one.is_behind,
            }
            for one in status.partitions
        ],
    }


def _group_text(status: GroupStatus) -> str:
    if status.is_skipped:
        return f"skipped: {status.reason}"
    counts = {
        "not translated": sum(one.upstream is None for one in status.partitions),
        "ahead of the mirror": sum(one.is_ahead for one in status.partitions),
        "behind on the target": sum(one.is_behind for one in status.partitions),
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    text = ", ".join([counted(len(status.partitions), "partition"), *(said or ["in step"])])
    is_kept = counts["behind on the target"] or counts["not translated"]
    return f"{text}: {status.reason}" if status.reason and is_kept else text


def _ledger(settings: FlowSettings, *, as_json: bool) -> Iterator[str]:
    entries = ledger_entries(settings)
    if as_json:
        for entry in entries:
            yield json.dumps({"flow": str(settings.flow), **json.loads(entry.encode())})
        return
    yield f"{settings.flow}: {_count(entries)}"
    for entry in entries:
        details = ", ".join(f"{name} {value}" for name, value in entry.details.items())
        yield f"  {entry.at.isoformat(timespec='seconds')} {entry.kind.value:5} {details}"


def _count(entries: Sequence[LedgerEntry]) -> str:
    return f"{len(entries)} entries" if len(entries) != 1 else "1 entry"
