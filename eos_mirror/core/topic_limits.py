"""
Decides which records a topic of the target refuses, before they are sent.

A broker refuses a whole batch because of one record, so a record that is certain to be refused
must not share a batch. Nothing here is a guess: the broker decides where compression may make a
record fit, or where clocks may differ.

Source: Kafka's LogValidator and UnifiedLog (size, timestamp, key of a compacted topic).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eos_mirror.core.records import DecodedRun, Headers, Outline

LIMIT: Final = "max.message.bytes"
MIN_IN_SYNC: Final = "min.insync.replicas"
NO_BOUND: Final = 2**63 - 1
NO_TIMESTAMP: Final = -1

BATCH_HEADER_BYTES: Final = 61
RECORD_BYTES: Final = 7
HEADER_BYTES: Final = 2
"""Least overhead of a record, and of each of its headers: one byte per length."""

ROOMY_RECORD_BYTES: Final = 36
ROOMY_HEADER_BYTES: Final = 10
"""Largest overhead of a record, and of each of its headers."""

RATIOS: Final = {"none": 1, "snappy": 22, "lz4": 255, "gzip": 1_032, "zstd": 33_000}
"""Best ratio by which a codec can shrink a record; its format sets this bound."""

CLOCK_SKEW_MS: Final = 60_000
"""A timestamp must be out of bounds by more than this: clocks of two machines may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLimits:
    """
    What one topic of the target accepts.

    Attributes:
        max_message_bytes: Largest batch, after compression.
        needs_keys: It is compacted, so records without a key are refused.
        before_ms: How far before the broker's clock a timestamp may lie; None: any.
        after_ms: How far after it; None: any.
        min_in_sync: With fewer replicas in sync, a partition accepts nothing. A partition that has
            fewer replicas needs all of them.
    """

    max_message_bytes: int
    needs_keys: bool = False
    before_ms: int | None = None
    after_ms: int | None = None
    min_in_sync: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderLimits:
    """
    What the producer does with records, whatever the topic.

    Attributes:
        max_request_bytes: Key and value of one record (`max.request.size`).
        compression: Name of its codec; `none` is one.
        batch_bytes, batch_records: Size of a full batch.
    """

    max_request_bytes: int = 268_435_456
    compression: str = "none"
    batch_bytes: int = 800_000
    batch_records: int = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRecords:
    """
    Adjacent records of a run that the target refuses for the same cause.

    Attributes:
        start, stop: Their indices in the run, `stop` not included.
        code: Kafka's name of the error that a broker would answer.
        reason: The cause of the first one, with the setting that helps.
    """

    start: int
    stop: int
    code: str
    reason: str

    def place(self, run: DecodedRun) -> str:
        """Return where the first one is, how large, and why it is refused."""
        who = "message handler" if run.failure else "target"
        key, value = _sized("key", run.keys[self.start]), _sized("value", run.values[self.start])
        return (
            f"next_offset={run.offsets[self.start]}: the {who} refuses this record "
            f"({self.code}; {key}, {value}): {self.reason}"
        )


def _sized(what: str, data: bytes | None) -> str:
    return f"no {what}" if data is None else f"{what} {len(data)} bytes"


def limits_of(config: Mapping[str, str]) -> TopicLimits:
    """
    Return the limits of a topic.

    Args:
        config: Effective configuration of the topic.
    """
    either = int(config.get("message.timestamp.difference.max.ms", NO_BOUND))
    is_stamped = config.get("message.timestamp.type") == "LogAppendTime"

    def bound(name: str) -> int | None:
        allowed_ms = min(int(config.get(name, NO_BOUND)), either)
        return None if is_stamped or allowed_ms >= NO_BOUND else allowed_ms

    return TopicLimits(
        max_message_bytes=int(config[LIMIT]),
        needs_keys="compact" in config.get("cleanup.policy", ""),
        before_ms=bound("message.timestamp.before.max.ms"),
        after_ms=bound("message.timestamp.after.max.ms"),
        min_in_sync=int(config.get(MIN_IN_SYNC, 1)),
    )


def fits(outline: Outline | None, limits: TopicLimits, *, now_ms: int) -> bool:
    """
    Return True if batches show, before they are decoded, that the topic accepts their records.

    They show no keys, and not the smallest timestamp.

    Args:
        now_ms: Milliseconds since the epoch.
    """
    if outline is None or limits.needs_keys or limits.before_ms is not None:
        return False
    if limits.after_ms is not None and outline.last_ms > now_ms + limits.after_ms:
        return False
    return outline.largest_batch_bytes <= limits.max_message_bytes


def first_refused(
    run: DecodedRun, topic: str, limits: TopicLimits, sender: SenderLimits, *, now_ms: int
) -> RefusedRecords | None:
    """
    Find the first records of a run that the target is certain to refuse; None if none is.

    A run without such records costs the same whatever its length.

    Args:
        topic: The remote topic, for the reason.
        now_ms: Milliseconds since the epoch.
    """
    if not _may_hold_any(run, limits, sender, now_ms):
        return None
    judged = enumerate(_judged(run, topic, limits, sender, now_ms))
    for start, verdict in judged:
        if verdict is None:
            continue
        code, reason = verdict
        stop = next((i for i, other in judged if other is None or other[0] != code), None)
        return RefusedRecords(
            start=start, stop=len(run.offsets) if stop is None else stop, code=code, reason=reason
        )
    return None


def _may_hold_any(run: DecodedRun, limits: TopicLimits, sender: SenderLimits, now_ms: int) -> bool:
    """
    Check a run without a line of Python per record.

    tests/benchmarks/test_hot_path.py counts the lines.
    """
    least = min(limits.max_message_bytes - BATCH_HEADER_BYTES, sender.max_request_bytes)
    large = (
        least - RECORD_BYTES
    ) // 2  # key and value may share it; headers are left to the broker
    if run.size_bytes > large or least < sender.batch_bytes:
        longest = max(map(len, filter(None, (*run.keys, *run.values))), default=0)
        if longest > large:
            return True
    if limits.needs_keys and None in run.keys:
        return True
    if limits.after_ms is not None and max(run.timestamps) > now_ms + limits.after_ms:
        return True
    return limits.before_ms is not None and min(run.timestamps) < now_ms - limits.before_ms


def _judged(
    run: DecodedRun, topic: str, limits: TopicLimits, sender: SenderLimits, now_ms: int
) -> Iterator[tuple[str, str] | None]:
    """Yield code and reason of each refused record; None for the others."""
    for key, value, headers, timestamp in zip(
        run.keys, run.values, run.headers, run.timestamps, strict=True
    ):
        yield (
            _too_large(key, value, headers, topic, limits, sender)
            or _without_key(key, topic, limits)
            or _out_of_bounds(timestamp, topic, limits, now_ms)
        )


def _too_large(
    key: bytes | None,
    value: bytes | None,
    headers: Headers | None,
    topic: str,
    limits: TopicLimits,
    sender: SenderLimits,
) -> tuple[str, str] | None:
    fields = len(key or b"") + len(value or b"")
    if fields > sender.max_request_bytes:
        return "MSG_SIZE_TOO_LARGE", (
            f"key and value have {fields} bytes, and the producer sends "
            f"{sender.max_request_bytes} at most. Raise producer.max.request.size"
        )
    least = BATCH_HEADER_BYTES + RECORD_BYTES + fields + _header_bytes(headers, HEADER_BYTES)
    if least // RATIOS.get(sender.compression, RATIOS["zstd"]) > limits.max_message_bytes:
        return "MSG_SIZE_TOO_LARGE", (
            f"the record has {least} bytes, and {topic} accepts {limits.max_message_bytes}. "
            f"{_more_room(topic, sender)}"
        )
    return None


def _more_room(topic: str, sender: SenderLimits) -> str:
    hint = f"Raise max.message.bytes of {topic}"
    if sender.compression == "none":
        hint += ", or compress with producer.compression.type"
    return hint


def _without_key(key: bytes | None, topic: str, limits: TopicLimits) -> tuple[str, str] | None:
    if key is not None or not limits.needs_keys:
        return None
    return "INVALID_RECORD", (
        f"the record has no key, and {topic} is compacted. Set cleanup.policy=delete on {topic} "
        f"until it is copied, and keep it so with config.properties.exclude"
    )


def _out_of_bounds(
    timestamp: int, topic: str, limits: TopicLimits, now_ms: int
) -> tuple[str, str] | None:
    if timestamp == NO_TIMESTAMP:
        return None
    ahead_ms = timestamp - now_ms
    for name, allowed_ms, distance_ms, where in (
        ("message.timestamp.after.max.ms", limits.after_ms, ahead_ms, "after"),
        ("message.timestamp.before.max.ms", limits.before_ms, -ahead_ms, "before"),
    ):
        if allowed_ms is not None and distance_ms > allowed_ms + CLOCK_SKEW_MS:
            return "INVALID_TIMESTAMP", (
                f"its timestamp {timestamp} lies {timedelta(milliseconds=distance_ms)} {where} "
                f"now, and {topic} allows {timedelta(milliseconds=allowed_ms)}. "
                f"Raise {name} of {topic}"
            )
    return None


def room_of(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """Return the bytes that a record needs in a batch at most, before compression."""
    fields = len(key or b"") + len(value or b"")
    return ROOMY_RECORD_BYTES + fields + _header_bytes(headers, ROOMY_HEADER_BYTES)


def _header_bytes(headers: Headers | None, each: int) -> int:
    return sum(each + len(name.encode()) + len(value or b"") for name, value in headers or ())
