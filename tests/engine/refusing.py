"""
How a broker checks a batch, and what its client reports about the records in it.

One bad record is enough to refuse the whole batch, and nothing of it is stored.
"""

from collections.abc import Collection, Sequence

from eos_mirror.core.suspects import Refusal
from eos_mirror.core.topic_limits import BATCH_HEADER_BYTES, RECORD_BYTES, TopicLimits
from tests.engine.target_log import Record

REFUSED_BY_POLICY = "POLICY_VIOLATION"


class RefusedBatch(Exception):  # noqa: N818 (an answer)
    """
    Attributes:
        named: Indices of the records that the client names.
    """

    def __init__(self, code: str, named: Sequence[int] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.named = named


def judge(
    records: Sequence[Record], limits: TopicLimits, forbidden: Collection[bytes]
) -> RefusedBatch | None:
    """Return why the batch is refused; None if it is accepted. A broker checks sizes first."""
    size = BATCH_HEADER_BYTES + sum(map(_size, records))
    if size > limits.max_message_bytes:
        return RefusedBatch("MSG_SIZE_TOO_LARGE")
    without_key = [i for i, record in enumerate(records) if record.key is None]
    if limits.needs_keys and without_key:
        # the client names no record if the broker named one, or all of them
        tells = 1 < len(without_key) < len(records)
        return RefusedBatch("INVALID_RECORD", without_key if tells else ())
    if any(record.value in forbidden for record in records):
        return RefusedBatch(REFUSED_BY_POLICY)
    return None


def _size(record: Record) -> int:
    headers = sum(2 + len(name) + len(value or b"") for name, value in record.headers or ())
    return RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers


def refusal_of(refused: RefusedBatch, offsets: Sequence[int] | None) -> Refusal:
    """
    Return what the client reports.

    Args:
        offsets: Upstream offsets of a numbered batch; None for a batch without a number.
    """
    if offsets is None:
        return Refusal(code=refused.code, reason="refused")
    return Refusal(
        code=refused.code,
        reason="refused",
        first=offsets[0],
        end=offsets[-1] + 1,
        records=len(offsets),
        named=tuple(offsets[i] for i in refused.named),
    )
