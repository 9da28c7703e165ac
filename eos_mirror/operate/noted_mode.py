"""Gathers the facts of a flow for a command that works on its positions."""

from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.driver.preflight import other_mode
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import UnsafeError
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.model import FlowSettings


def facts_of_this_mode(
    settings: FlowSettings, clusters: FlowClusters, topics: TopicSync
) -> FlowFacts:
    """
    Return the facts of a flow that runs in the configured mode, or never ran.

    Raises:
        UnsafeError: It runs in another mode, or MirrorMaker 2 continues its copies.
        RestartTask: A cluster did not answer.
    """
    mode = mode_of(settings)
    facts = gather(clusters, topics.plan, mode=mode, within=settings.admin_timeout)
    if dangers := other_mode(facts, mode):
        raise UnsafeError("\n".join(dangers))
    return facts
