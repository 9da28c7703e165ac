"""
Connect's `RegexRouter`: gives remote topics other names.

It works on the name that the replication policy gives a topic, so the topic of a copy is known
before any record is read. Connect routes each record.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eos_mirror.core.policy import InternalTopics, ReplicationPolicy, is_heartbeats_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexRouter:
    """
    A rule for the names of remote topics.

    Attributes:
        pattern: Matches whole names.
        parts: What replaces the match: a text, or the number of a group of the pattern.
        only: The router applies only to names that this pattern matches; None: to all.
        negated: It applies only to names that `only` does not match.
    """

    pattern: "re.Pattern[str]"
    parts: Sequence[str | int]
    only: "re.Pattern[str] | None" = None
    negated: bool = False

    def __call__(self, topic: str) -> str:
        """Return the other name; the same one if the router does not apply."""
        if self.only is not None and (self.only.fullmatch(topic) is None) is not self.negated:
            return topic
        if self.pattern.fullmatch(topic) is None:
            return topic
        found = self.pattern.search(topic)  # as in Java, the replaced part may be shorter
        if found is None:
            return topic
        new = "".join(found[one] or "" if isinstance(one, int) else one for one in self.parts)
        return topic[: found.start()] + new + topic[found.end() :]


def replacement_parts(text: str, groups: int) -> tuple[str | int, ...]:
    r"""
    Read a replacement as Java does: `$1` is a group, and `\$` a dollar.

    Args:
        groups: Number of groups of the pattern.

    Raises:
        ValueError: It names a group that does not exist.
    """
    parts: list[str | int] = []
    literal, at = "", 0
    while at < len(text):
        if text[at] == "$":
            number, at = _group(text, at + 1, groups)
            parts += [literal, number]
            literal = ""
            continue
        if text[at] == "\\":
            at += 1
        literal += text[at : at + 1]
        at += 1
    return tuple(one for one in (*parts, literal) if one != "")


def _group(text: str, at: int, groups: int) -> tuple[int, int]:
    """Return the number of a group, and where it ends. It has more digits if that group exists."""
    end = at + 1
    if not text[at:end].isdecimal() or int(text[at:end]) > groups:
        raise ValueError(f"${text[at:end]} is no group of the expression")
    while text[at : end + 1].isdecimal() and end < len(text) and int(text[at : end + 1]) <= groups:
        end += 1
    return int(text[at:end]), end


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingPolicy:
    """
    Applies routers to the names that another policy gives remote topics.

    Such a name does not show where its topic came from.

    Attributes:
        routers: In the order in which they are applied; never to heartbeats.
        others: The other policy.
    """

    routers: Sequence[RegexRouter]
    others: ReplicationPolicy

    @property
    def internal_topics(self) -> InternalTopics:
        """Names of MirrorMaker 2's own topics."""
        return self.others.internal_topics

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the name that the routers leave."""
        remote = self.others.format_remote_topic(alias, topic)
        if is_heartbeats_topic(self.others, topic):
            return remote
        for router in self.routers:
            remote = router(remote)
        return remote

    def topic_source(self, topic: str) -> str | None:
        """Return the answer of the other policy."""
        return self.others.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Return the answer of the other policy."""
        return self.others.upstream_topic(topic)
