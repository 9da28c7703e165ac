"""What operators order over HTTP: the verbs of `eos-mirror`, with the same effect."""

import re
from collections.abc import Callable
from typing import Any, Final

from eos_mirror.core.desired import ALL, Wanted
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.operate.desired import Outcome, order, reload, retry

Verb = Callable[[FlowRunner, str, str], Outcome]
"""Takes a flow, a pattern of topics, and a reason."""


def _wanting(wanted: Wanted) -> Verb:
    def give(runner: FlowRunner, topics: str, reason: str) -> Outcome:
        return order(runner.settings, wanted, topics=topics, reason=reason)

    return give


VERBS: Final[dict[str, Verb]] = {
    "pause": _wanting(Wanted.PAUSED),
    "resume": _wanting(Wanted.RUNNING),
    "stop": _wanting(Wanted.STOPPED),
    "start": _wanting(Wanted.RUNNING),
    "retry": lambda runner, topics, _: retry(runner.settings, topics=topics),
    "reload": lambda runner, _topics, _reason: reload(runner.settings),
}


def give_order(runner: FlowRunner, verb: str, body: Any, *, topic: str | None) -> dict[str, Any]:
    """
    Order something, and wait for the effect.

    Args:
        body: `topics`, a regular expression, and `reason`; both are optional.
        topic: Only this source topic, instead of `topics`.

    Returns:
        `done`: False if the run has not reported in time; the order stays.

    Raises:
        ValueError: The body is not such an object.
        ConfigError: `topics` is no regular expression.
        TargetUnavailable, NotAuthorized: The order could not be written.
    """
    if not isinstance(body, dict) or not body.keys() <= {"topics", "reason"}:
        raise ValueError("the body is not an object with topics and reason")
    topics, reason = (body.get(key, default) for key, default in (("topics", ALL), ("reason", "")))
    if not isinstance(topics, str) or not isinstance(reason, str):
        raise ValueError("topics and reason are texts")  # noqa: TRY004 (of a request)
    outcome = VERBS[verb](runner, topics if topic is None else re.escape(topic), reason)
    applied = outcome.applied
    return {
        "flow": str(runner.flow),
        "done": applied is not None or not outcome.has_run,
        "halted_partitions": None if applied is None else applied.partitions,
    }
