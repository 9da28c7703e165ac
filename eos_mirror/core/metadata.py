"""
The metadata of an offset: what a position was committed with, in one ASCII string.

`em1:<topic id>:<claims topic id>:<incarnation>:<sequence>:<tail of the offset map>`
"""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.map_segment import decode_segment

PREFIX: Final = "em1:"
GROUP_PREFIX: Final = "ema1:"
HANDED_OVER: Final = "handed-over:"
"""Stands before the metadata of a position that MirrorMaker 2 continues."""
MAX_CHARS: Final = 1024
"""Brokers accept 4096 (offset.metadata.max.bytes); a quarter leaves room for stricter ones."""

_TOPIC_ID = r"[A-Za-z0-9_-]{22}|"
_FIELDS: Final = re.compile(
    rf"em1:(?P<topic_id>{_TOPIC_ID}):(?P<claims_topic_id>{_TOPIC_ID})"
    r":(?P<incarnation>[0-9a-f]{32}):(?P<sequence>0|[1-9][0-9]{0,18}):(?P<tail>[A-Za-z0-9_-]+)"
)
_GROUP_FIELDS: Final = re.compile(
    rf"ema1:(?P<topic_id>{_TOPIC_ID}):(?P<partitions>[1-9][0-9]{{0,8}})"
)
_OTHER_VERSION: Final = re.compile(r"em[0-9]+:")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowMetadata:
    """
    What a shadow offset holds besides next_offset.

    Attributes:
        topic_id: Id of the source topic, in Kafka's base64 (22 characters); empty if the source
            has none. Another id at the next start means that the topic was re-created.
        claims_topic_id: Id of the claims topic, in the same form. Another id means that claims
            were lost.
        incarnation: The incarnation that committed: uuid4, 32 hex digits.
        sequence: Number of the commit; grows for the life of the shadow offset.
        tail: `MapTail.encode()`; its upstream end is the committed next_offset.
    """

    topic_id: str
    claims_topic_id: str
    incarnation: str
    sequence: int
    tail: bytes


def encode(metadata: ShadowMetadata) -> str:
    """
    Return the string to commit; ASCII, at most 1024 characters.

    Raises:
        ValueError: A field does not fit its form, or the tail should have been spilled.
    """
    text = (
        f"{PREFIX}{metadata.topic_id}:{metadata.claims_topic_id}"
        f":{metadata.incarnation}:{metadata.sequence}:{_to_base64(metadata.tail)}"
    )
    if len(text) > MAX_CHARS:
        raise ValueError(f"shadow metadata has {len(text)} characters, more than {MAX_CHARS}")
    if _FIELDS.fullmatch(text) is None:
        raise ValueError(f"shadow metadata has a malformed field: {text[:120]!r}")
    return text


def decode(text: str) -> ShadowMetadata:
    """
    Decode a committed string. One trailing NUL, which some clients leave, is ignored, and so is
    the mark of a position that was handed over.

    Raises:
        ValueError: Written by another program, by a newer eos_mirror, or damaged.
    """
    text = text.removesuffix("\0").removeprefix(HANDED_OVER)
    if len(text) > MAX_CHARS:
        raise ValueError(f"shadow metadata has {len(text)} characters, more than {MAX_CHARS}")
    if not text.startswith(PREFIX):
        if _OTHER_VERSION.match(text):
            raise ValueError(f"shadow metadata was written by a newer eos_mirror: {text[:8]!r}")
        raise ValueError(f"shadow metadata was not written by eos_mirror: {text[:40]!r}")
    fields = _FIELDS.fullmatch(text)
    if fields is None:
        raise ValueError(f"shadow metadata has a malformed field: {text[:120]!r}")
    tail = _from_base64(fields["tail"])
    decode_segment(tail)
    return ShadowMetadata(
        topic_id=fields["topic_id"],
        claims_topic_id=fields["claims_topic_id"],
        incarnation=fields["incarnation"],
        sequence=int(fields["sequence"]),
        tail=tail,
    )


def handed_over(text: str) -> str:
    """Return the metadata of a position at which no task may resume: MirrorMaker 2 has it."""
    return HANDED_OVER + text.removeprefix(HANDED_OVER)


def is_handed_over(text: str) -> bool:
    """Return whether MirrorMaker 2 continues at this position."""
    return text.startswith(HANDED_OVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """
    What an offset of the source group holds besides next_offset, at least once.

    Attributes:
        topic_id: Id of the source topic; see `ShadowMetadata`.
        partitions: Partition count of the source topic when it was first mirrored. A partition
            that was added later begins at its earliest record.
    """

    topic_id: str
    partitions: int


def encode_group(metadata: GroupMetadata) -> str:
    """Return `ema1:<topic id>:<partitions>`."""
    return f"{GROUP_PREFIX}{metadata.topic_id}:{metadata.partitions}"


def decode_group(text: str) -> GroupMetadata | None:
    """Decode the metadata; None if another program committed it, such as an operator's tool."""
    fields = _GROUP_FIELDS.fullmatch(text.removesuffix("\0"))
    if fields is None:
        return None
    return GroupMetadata(topic_id=fields["topic_id"], partitions=int(fields["partitions"]))


def topic_id_of(text: str) -> str:
    """
    Return the id of the source topic with which a position was committed, in either mode.

    Empty if another program committed it: its metadata say nothing about the topic.
    """
    group = decode_group(text)
    if group is not None:
        return group.topic_id
    try:
        return decode(text).topic_id
    except ValueError:
        return ""


def _to_base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as exc:
        raise ValueError(f"shadow metadata has a damaged offset map: {exc}") from exc
    if _to_base64(data) != text:
        raise ValueError("shadow metadata has a damaged offset map: stray bits at its end")
    return data
