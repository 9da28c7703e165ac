"""Makes every cluster find its coordinators while the program is still loading."""

from collections.abc import Mapping

from eos_mirror.kafka.warm_up import find_coordinator, find_transaction_coordinator
from eos_mirror.settings import clients
from eos_mirror.settings.model import Settings


def warm_up(settings: Settings) -> None:
    """Trigger the lookups, once for each cluster. Returns immediately and never fails."""
    groups: dict[str, tuple[Mapping[str, str], str]] = {}
    producers: dict[str, tuple[Mapping[str, str], str]] = {}
    for flow in settings.flows:
        names = flow.flow
        if not flow.is_source_connector:
            groups.setdefault(names.source, (clients.source_admin(flow), names.source_group))
        groups.setdefault(names.target, (clients.target_admin(flow), names.shadow_group))
        if flow.exactly_once:
            producers.setdefault(names.target, (clients.target_producer(flow), names.probe_id))
    for config, group in groups.values():
        find_coordinator(config, group)
    for config, probe in producers.values():
        find_transaction_coordinator(config, probe)
