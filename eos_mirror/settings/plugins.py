"""
The objects that decide what a flow mirrors, and how its topics are named.

MirrorMaker 2's classes are built in. A user's class is given as `module.Class`. Its constructor
takes one argument: the flow's keys that concern names, as text.
"""

from eos_mirror.core.filters import NameFilter, TopicFilter
from eos_mirror.core.handlers import MessageHandler
from eos_mirror.core.plugins import make
from eos_mirror.core.policy import RenamingPolicy, ReplicationPolicy, replication_policy
from eos_mirror.core.rebalance_listener import ARGUMENTS, ListenerSpec, UserListener
from eos_mirror.core.regex_router import RoutingPolicy
from eos_mirror.settings.filters import CONFIG_FILTER, GROUP_FILTER, TOPIC_FILTER
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.values import Patterns, PolicyClass

POLICY_HAS = ("internal_topics", "format_remote_topic", "topic_source", "upstream_topic")
FILTER_HAS = ("matches",)


def policy_of(flow: FlowSettings) -> ReplicationPolicy:
    """
    Return the policy that names remote and internal topics.

    Raises:
        ConfigError: The user's class cannot be used.
    """
    name = flow.replication_policy
    if name in set(PolicyClass):
        named = replication_policy(
            name,
            separator=flow.replication_policy_separator,
            internal_separator_enabled=flow.internal_topic_separator_enabled,
            source_alias=flow.flow.source,
        )
    else:
        named = make(name, plugin_config(flow), POLICY_HAS)
    if flow.renames:
        named = RenamingPolicy(renames=flow.renames, others=named)
    if flow.transforms.routers:
        named = RoutingPolicy(routers=flow.transforms.routers, others=named)
    return named


def topic_filter_of(flow: FlowSettings) -> NameFilter:
    """Return the filter of source topics; raises as `policy_of`."""
    if flow.filters.topic_class == TOPIC_FILTER:
        return TopicFilter(_texts(flow.topics), _texts(flow.topics_exclude))
    found: NameFilter = make(flow.filters.topic_class, plugin_config(flow), FILTER_HAS)
    return found


def group_filter_of(flow: FlowSettings) -> NameFilter:
    """Return the filter of source groups to emit checkpoints for; raises as `policy_of`."""
    if flow.filters.group_class == GROUP_FILTER:
        return TopicFilter(_texts(flow.groups.include), _texts(flow.groups.exclude))
    found: NameFilter = make(flow.filters.group_class, plugin_config(flow), FILTER_HAS)
    return found


def handler_of(flow: FlowSettings) -> MessageHandler | None:
    """Return the message handler; None if each record has one copy. Raises as `policy_of`."""
    spec = flow.transforms.handler
    return None if spec is None else spec.make()


def listener_spec(flow: FlowSettings) -> ListenerSpec | None:
    """Return the rebalance listener of a flow; None without one."""
    if not flow.connector.listener:
        return None
    config = {
        "source.cluster.alias": flow.flow.source,
        "target.cluster.alias": flow.flow.target,
        ARGUMENTS: flow.connector.listener_args,
    }
    return ListenerSpec(path=flow.connector.listener, config=tuple(config.items()))


def listener_of(flow: FlowSettings) -> UserListener | None:
    """Return the rebalance listener; None without one. Raises as `policy_of`."""
    spec = listener_spec(flow)
    return None if spec is None else spec.make()


def config_filter_of(flow: FlowSettings) -> NameFilter:
    """Return the filter of topic configs that a remote topic gets; raises as `policy_of`."""
    if flow.filters.config_class == CONFIG_FILTER:
        return TopicFilter([".*"], _texts(flow.config_exclude))
    found: NameFilter = make(flow.filters.config_class, plugin_config(flow), FILTER_HAS)
    return found


def plugin_config(flow: FlowSettings) -> dict[str, str]:
    """Return the argument for a user's class: MirrorMaker 2's names, lists with commas."""
    lists = {
        "topics": flow.topics,
        "topics.exclude": flow.topics_exclude,
        "groups": flow.groups.include,
        "groups.exclude": flow.groups.exclude,
        "config.properties.exclude": flow.config_exclude,
    }
    return {
        "source.cluster.alias": flow.flow.source,
        "target.cluster.alias": flow.flow.target,
        "replication.policy.separator": flow.replication_policy_separator,
        "replication.policy.internal.topic.separator.enabled": str(
            flow.internal_topic_separator_enabled
        ).lower(),
        **{key: ", ".join(_texts(patterns)) for key, patterns in lists.items()},
    }


def _texts(patterns: Patterns) -> list[str]:
    return [pattern.pattern for pattern in patterns]
