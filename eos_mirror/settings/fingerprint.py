"""Fingerprints that show whether two deployments of a flow have the same configuration."""

import hashlib
import json
from dataclasses import asdict

from eos_mirror.core.regex_router import RegexRouter
from eos_mirror.settings.filters import TOPIC_FILTER
from eos_mirror.settings.model import FlowSettings


def fingerprint(flow: FlowSettings) -> str:
    """
    Hash the settings that decide which records go where and how many tasks copy them.

    The eight hexadecimal digits do not depend on the host, the Python version or the order of
    topics. They cover no addresses and no secrets.
    """
    decisive = {
        "topics": sorted(p.pattern for p in flow.topics),
        "topics.exclude": sorted(p.pattern for p in flow.topics_exclude),
        "heartbeats": flow.heartbeats_replicated,
        "policy": flow.replication_policy,
        "separator": flow.replication_policy_separator,
        "internal.separator": flow.internal_topic_separator_enabled,
        "start.position": flow.start_position,
        "tasks.max": flow.tasks_max,
        "connector.type": flow.connector.type.value,
        "exactly.once": flow.exactly_once,
    }
    if flow.filters.topic_class != TOPIC_FILTER:
        decisive["topic.filter"] = flow.filters.topic_class
    if flow.filters.provenance:
        decisive["provenance"] = True
    if flow.quarantine is not None:
        decisive["quarantine"] = flow.quarantine
    if flow.transforms.chain:
        decisive["transforms"] = [asdict(one) for one in flow.transforms.chain]
    if flow.transforms.handler is not None:
        decisive["handler"] = [flow.filters.handler, flow.filters.handler_args]
    if flow.transforms.routers:
        decisive["routers"] = [_described(one) for one in flow.transforms.routers]
    if flow.renames:
        decisive["renames"] = [[one.pattern.pattern, one.remote] for one in flow.renames]
    text = json.dumps(decisive, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _described(router: RegexRouter) -> list[object]:
    only = None if router.only is None else router.only.pattern
    return [router.pattern.pattern, list(router.parts), only, router.negated]
