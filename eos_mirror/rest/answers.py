"""What the HTTP server answers about flows, as JSON-able values."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from eos_mirror.core.states import GRAVEST, Condition, FlowFacts, State, flow_state
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.partition_states import conditions_of
from eos_mirror.driver.paths import shares
from eos_mirror.driver.readiness import Readiness, facts_of


def flow_answer(runner: FlowRunner, readiness: Readiness) -> dict[str, Any]:
    """Return a flow: its state, its partitions by state, and the state of each topic."""
    conditions = conditions_of(runner)
    facts = facts_of(runner)
    states = [one.state for one in conditions.values()]
    return {
        "flow": str(runner.flow),
        "source": runner.flow.source,
        "target": runner.flow.target,
        "state": _state_of(facts, states, readiness),
        "tasks": runner.tasks_count,
        "partitions": _counted(states),
        "topics": {
            topic: _gravest(one for p, one in conditions.items() if p.topic == topic)
            for topic in sorted({partition.topic for partition in conditions})
        },
        "limits": [
            {"topic": topic, **order.fields}
            for topic, order in runner.desired.limited(runner.orders.topics).items()
        ],
        "written": shares(runner.paths.of_flow(runner.statuses())),
        "refused": dict(facts.refused),
        "ended": dict(facts.ended),
    }


def _state_of(facts: FlowFacts, states: Collection[State], readiness: Readiness) -> str:
    if readiness.is_on_standby:
        return readiness.state
    if facts.ended:
        return State.FAILED.value
    if not (states or facts.refused or readiness.is_settled):
        return State.STARTING.value  # nothing is known yet
    return flow_state(states, has_run=True, refused=bool(facts.refused)).value


def topic_answer(runner: FlowRunner, topic: str) -> dict[str, Any] | None:
    """Return a source topic with the state of each partition; None if it is not mirrored."""
    found = {p: one for p, one in conditions_of(runner).items() if p.topic == topic}
    if not found:
        return None
    lags = runner.metrics.lags()
    remotes = runner.topics.partitions
    return {
        "topic": topic,
        "remote": runner.topics.routes.get(topic, ""),
        "state": _gravest(found.values()),
        "partitions": [
            {"partition": p.partition, **_described(found[p]), "lag": lags.get(remotes.get(p, p))}
            for p in sorted(found)
        ],
    }


def _described(one: Condition) -> dict[str, Any]:
    fault: Mapping[str, str] = {} if one.fault is None else {"cause": one.fault.cause}
    reason = {"reason": one.reason} if one.reason else {}
    return {"state": one.state.value, **fault, **reason}


def _gravest(conditions: Iterable[Condition]) -> str:
    found = {one.state for one in conditions}
    return next(state.value for state in GRAVEST if state in found)


def _counted(states: Iterable[State]) -> dict[str, int]:
    counts = Counter(states)
    return {state.value: counts[state] for state in GRAVEST if counts[state]}
