"""The state of each partition of a flow, as its run knows it."""

from collections.abc import Iterator, Mapping
from typing import Any

from eos_mirror.core.desired import Wanted
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.states import Condition, Fault, PartitionFacts, State, condition_of
from eos_mirror.driver.flow import FlowRunner


def outages_of(runner: FlowRunner) -> dict[str, str]:
    """Return why clusters of a flow do not answer now, by alias."""
    of_the_flow = {runner.flow.source, runner.flow.target}
    return {alias: why for alias, why in list(runner.outages.items()) if alias in of_the_flow}


def conditions_of(runner: FlowRunner) -> dict[TopicPartition, Condition]:
    """Return the state of each planned source partition, with the reason. Asks no cluster."""
    owned = {p for report in runner.reports() for p in report.holds or ()}
    ordered, stopped, waiting = runner.ordered(), runner.stopped, runner.waiting
    silent = [f"{alias} does not answer: {why}" for alias, why in outages_of(runner).items()]
    found = {}
    for partition in list(runner.topics.partitions):
        order, reason = ordered.get(partition), stopped.get(partition)
        cause = runner.causes.of(str(partition))
        facts = PartitionFacts(
            has_run=True,
            is_owned=partition in owned,
            fault=None if reason is None else Fault(cause=cause, reason=reason),
            stopped=str(order) if order and order.wanted is Wanted.STOPPED else "",
            paused=str(order) if order and order.wanted is Wanted.PAUSED else "",
            obstacle="; ".join(silent) or waiting.get(partition, ""),
        )
        found[partition] = condition_of(facts)
    return found


def state_rows(runner: FlowRunner) -> Iterator[tuple[Mapping[str, str], Mapping[str, Any]]]:
    """Yield the attributes of the one series that each remote partition has, and its value."""
    remotes = runner.topics.partitions
    for partition, condition in conditions_of(runner).items():
        remote = remotes.get(partition)
        if remote is None:  # left out since
            continue
        fault = condition.fault if condition.state is State.FAILED else None
        attributes = {
            "source": runner.flow.source,
            "target": runner.flow.target,
            "topic": remote.topic,
            "partition": str(remote.partition),
            "state": condition.state.value,
            "cause": fault.cause if fault else "",
        }
        yield attributes, {"state": 1}
