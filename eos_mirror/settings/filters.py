"""What decides which records are mirrored: classes, and transforms of records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator

from eos_mirror.core.handlers import HandlerSpec
from eos_mirror.core.plugins import find_class
from eos_mirror.core.regex_router import RegexRouter
from eos_mirror.core.transforms import Transform
from eos_mirror.settings.key import Key
from eos_mirror.settings.values import MM2_PACKAGE, Boolean, Kind, Names, Text

TOPIC_FILTER: Final = "DefaultTopicFilter"
GROUP_FILTER: Final = "DefaultGroupFilter"
CONFIG_FILTER: Final = "DefaultConfigPropertyFilter"
_BUILT_IN: Final = (TOPIC_FILTER, GROUP_FILTER, CONFIG_FILTER)


def _filter_class(text: str) -> str:
    name = text.removeprefix(MM2_PACKAGE)
    if name not in _BUILT_IN:
        find_class(name)
    return name


def _handler_class(text: str) -> str:
    if text:
        find_class(text)
    return text


HandlerClass = Annotated[str, BeforeValidator(_handler_class), Kind("class")]
FilterClass = Annotated[str, BeforeValidator(_filter_class), Kind("class")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSettings:
    """Class names without MirrorMaker 2's package, and the filter of records."""

    topic_class: Annotated[
        FilterClass,
        Key(
            "topic.filter.class",
            TOPIC_FILTER,
            "A Python class replaces `topics` and `topics.exclude`.",
        ),
    ]
    group_class: Annotated[
        FilterClass,
        Key(
            "group.filter.class",
            GROUP_FILTER,
            "A Python class replaces `groups` and `groups.exclude`.",
        ),
    ]
    config_class: Annotated[
        FilterClass,
        Key(
            "config.property.filter.class",
            CONFIG_FILTER,
            "A Python class replaces `config.properties.exclude`.",
        ),
    ]
    transforms: Annotated[
        Names,
        Key(
            "transforms",
            "",
            "Names of [transforms](transforms.md), which change or drop each record, in order.",
            shown_default="none",
        ),
    ]
    predicates: Annotated[
        Names,
        Key(
            "predicates",
            "",
            "Names of predicates: they limit a transform to some records.",
            shown_default="none",
        ),
    ]
    handler: Annotated[
        HandlerClass,
        Key(
            "message.handler",
            "",
            "A [Python class](plugins.md#a-message-handler) that makes the copies of each record: "
            "none, one or several.",
            shown_default="one copy of each record",
        ),
    ]
    handler_args: Annotated[
        Text, Key("message.handler.args", "", "Passed to the class.", shown_default="none")
    ]
    provenance: Annotated[
        Boolean,
        Key(
            "provenance.headers.enabled",
            "false",
            "At least once: a header of each copy lists the clusters that it passed. A record "
            "that would return to one of them is skipped.",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transforms:
    """
    The transforms of a flow.

    Attributes:
        chain: Those of records, in the order in which they are applied.
        routers: Those of names of topics, in order.
        texts: Each line that sets one of them or a predicate, without the prefix of the flow.
        handler: What makes copies of what the chain leaves; None: one of each record.
    """

    chain: tuple[Transform, ...]
    routers: tuple[RegexRouter, ...]
    texts: Mapping[str, str]
    handler: HandlerSpec | None = None


NO_TRANSFORMS: Final = Transforms(chain=(), routers=(), texts={})
