"""What operators order over HTTP: the verbs of `eos-mirror`, with the same effect."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from eos_mirror.core.desired import ALL, Wanted
from eos_mirror.core.throttles import Limit
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.operate.desired import Outcome, order, reload, retry, throttle

Verb = Callable[[FlowRunner, str, Mapping[str, Any]], Outcome]
"""Takes a flow, a pattern of topics, and the other fields of the body."""

RATES: Final = ("bytes_per_second", "records_per_second")
FIELDS: Final = {"topics", "reason"}


def _wanting(wanted: Wanted) -> Verb:
    def give(runner: FlowRunner, topics: str, body: Mapping[str, Any]) -> Outcome:
        return order(runner.settings, wanted, topics=topics, reason=_reason(body))

    return give


def _throttle(runner: FlowRunner, topics: str, body: Mapping[str, Any]) -> Outcome:
    rates = [body.get(name) for name in RATES]
    if not all(rate is None or (type(rate) is int and rate > 0) for rate in rates):
        raise ValueError(f"{' and '.join(RATES)} are whole numbers above 0, or null")
    limit = Limit(bytes_per_s=rates[0], records_per_s=rates[1])
    return throttle(runner.settings, limit, topics=topics, reason=_reason(body))


def _reason(body: Mapping[str, Any]) -> str:
    return str(body.get("reason", ""))


VERBS: Final[dict[str, Verb]] = {
    "pause": _wanting(Wanted.PAUSED),
    "resume": _wanting(Wanted.RUNNING),
    "stop": _wanting(Wanted.STOPPED),
    "start": _wanting(Wanted.RUNNING),
    "throttle": _throttle,
    "retry": lambda runner, topics, _: retry(runner.settings, topics=topics),
    "reload": lambda runner, _topics, _body: reload(runner.settings),
}


def give_order(runner: FlowRunner, verb: str, body: Any, *, topic: str | None) -> dict[str, Any]:
    """
    Order something, and wait for the effect.

    Args:
        body: `topics`, a regular expression, and `reason`; for `throttle` also
            `bytes_per_second` and `records_per_second`. Without a rate, the limit is lifted.
        topic: Only this source topic, instead of `topics`.

    Returns:
        `done`: False if the run has not reported in time; the order stays.

    Raises:
        ValueError: The body is not such an object.
        ConfigError: `topics` is no regular expression.
        TargetUnavailable, NotAuthorized: The order could not be written.
    """
    fields = FIELDS.union(RATES if verb == "throttle" else ())
    if not isinstance(body, dict) or not body.keys() <= fields:
        raise ValueError(f"the body is not an object with {', '.join(sorted(fields))}")
    topics = body.get("topics", ALL)
    if not isinstance(topics, str) or not isinstance(body.get("reason", ""), str):
        raise ValueError("topics and reason are texts")  # noqa: TRY004 (of a request)
    outcome = VERBS[verb](runner, topics if topic is None else re.escape(topic), body)
    applied = outcome.applied
    return {
        "flow": str(runner.flow),
        "done": applied is not None or not outcome.has_run,
        "halted_partitions": None if applied is None else applied.partitions,
    }
