"""
What a task's process receives at its start: its identity, the driver's address, what to run.

The spec holds secrets. It travels over the stdin of a local child or inside the closure of a
Spark job; never in arguments, the environment or `spark.*` settings, which others can read.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """
    One submission of one task.

    Attributes:
        slot: Index of the task, from 0.
        submission: Unique in a run of the driver, such as `0.7`: the eighth of slot 0.
        control_host: Host of the driver's control server, as the task sees it.
        control_port: Its port.
        key: Hex; random per run of the driver. Signs every line of the control channel.
        entry: `package.module:function`, a `ports.TaskEntry`.
        config: JSON-able; handed to the entry unchanged.
    """

    slot: int
    submission: str
    control_host: str
    control_port: int
    key: str = field(repr=False)
    entry: str
    config: Mapping[str, Any] = field(repr=False)

    def to_json(self) -> str:
        """Return the spec as text, secrets included."""
        return json.dumps(asdict(self), separators=(",", ":"))


def spec_from_json(text: str) -> TaskSpec:
    """
    Read a spec back.

    Raises:
        ValueError: Not a spec. The message does not repeat the text: it may hold secrets.
    """
    try:
        return TaskSpec(**json.loads(text))
    except (TypeError, ValueError):
        raise ValueError("not a task spec") from None
