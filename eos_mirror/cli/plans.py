"""What `run --check` prints of the plan of a flow."""

import json
from collections.abc import Collection

from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.plural import counted

SHOWN = 20
"""Names on the lines of a plan, for people."""


def plan_json(plan: FlowPlan) -> str:
    """Return a plan as one line of JSON, for programs."""
    fields = {
        "flow": str(plan.flow),
        "topics": {r.source_topic: r.remote_topic for r in plan.routes},
        "partitions": sum(route.partitions for route in plan.routes),
        "create": [route.remote_topic for route in plan.to_create],
        "grow": [small.remote_topic for small in plan.too_small],
        "refused": plan.refused,
        "left_out": plan.left_out,
    }
    return json.dumps(fields) + "\n"


def plan_text(plan: FlowPlan) -> str:
    """Return a plan as lines for a person: how many topics, and everything that is special."""
    partitions = sum(route.partitions for route in plan.routes)
    lines = [
        f"{plan.flow}: {counted(len(plan.routes), 'topic')}, {counted(partitions, 'partition')}"
    ]
    for what, names in (
        ("to mirror", [_route(r.source_topic, r.remote_topic) for r in plan.routes]),
        ("to create", [route.remote_topic for route in plan.to_create]),
        ("to grow", [small.remote_topic for small in plan.too_small]),
        ("left out, copies from the target", list(plan.left_out)),
    ):
        lines += _listed(what, names)
    reasons = dict.fromkeys(plan.refused.values())  # several topics may share one
    lines += [f"  not mirrored: {reason}" for reason in reasons]
    return "\n".join(lines) + "\n"


def _route(topic: str, remote: str) -> str:
    return topic if topic == remote else f"{topic} -> {remote}"


def _listed(what: str, names: Collection[str]) -> list[str]:
    if not names:
        return []
    shown = sorted(names)[:SHOWN]
    more = f", and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return [f"  {what}: {', '.join(shown)}{more}"]
