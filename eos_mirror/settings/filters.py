"""Which classes decide what is mirrored: MirrorMaker 2's, which are built in, or the user's."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator

from eos_mirror.core.plugins import find_class
from eos_mirror.settings.key import Key
from eos_mirror.settings.values import MM2_PACKAGE, Boolean, Kind

TOPIC_FILTER: Final = "DefaultTopicFilter"
GROUP_FILTER: Final = "DefaultGroupFilter"
CONFIG_FILTER: Final = "DefaultConfigPropertyFilter"
_BUILT_IN: Final = (TOPIC_FILTER, GROUP_FILTER, CONFIG_FILTER)


def _filter_class(text: str) -> str:
    name = text.removeprefix(MM2_PACKAGE)
    if name not in _BUILT_IN:
        find_class(name)
    return name


FilterClass = Annotated[str, BeforeValidator(_filter_class), Kind("class")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSettings:
    """Names of the classes, without the package of MirrorMaker 2; and the filter of records."""

    topic_class: Annotated[
        FilterClass,
        Key(
            "topic.filter.class",
            TOPIC_FILTER,
            "Decides instead of `topics` and `topics.exclude`, if it is a Python class.",
        ),
    ]
    group_class: Annotated[
        FilterClass,
        Key("group.filter.class", GROUP_FILTER, "Likewise, of `groups` and `groups.exclude`."),
    ]
    config_class: Annotated[
        FilterClass,
        Key(
            "config.property.filter.class",
            CONFIG_FILTER,
            "Likewise, of `config.properties.exclude`.",
        ),
    ]
    provenance: Annotated[
        Boolean,
        Key(
            "provenance.headers.enabled",
            "false",
            "At least once: copies carry the clusters they passed in a header, and what would "
            "come back to one of them is left out.",
        ),
    ]
