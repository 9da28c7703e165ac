"""Writes the records of a batch with the compiled encoder of aiokafka."""

from collections.abc import Sequence
from itertools import repeat
from operator import length_hint
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from eos_mirror.core.records import Headers

_NO_HEADERS: Final[Headers] = []
_NO_TIMESTAMP = -1


def is_encodable(timestamp: int, headers: Headers | None) -> bool:
    """
    Return whether the compiled encoder can begin a batch with a record.

    It takes the timestamp -1 for the absence of a first record, and header keys as UTF-8.
    """
    return timestamp != _NO_TIMESTAMP and all(_is_text(name) for name, _ in headers or ())


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class CompiledEncoder:
    """Encodes one batch, whose first record `is_encodable`. Implements `builder.Encoder`."""

    def __init__(self, *, max_bytes: int) -> None:
        """
        Begin a batch.

        Args:
            max_bytes: Largest batch. The first record is accepted, whatever its size.
        """
        self.count = 0
        self._encoder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, max_bytes + 1)

    @property
    def size(self) -> int:
        """Bytes of the batch so far."""
        size: int = self._encoder.size()
        return size

    def extend(
        self,
        timestamps: Sequence[int],
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Headers | None],
    ) -> int:
        """Append records while they fit and can be encoded, and return how many did."""
        count = len(timestamps)
        has_none = headers.count(None) == count
        filled = repeat(_NO_HEADERS) if has_none else [each or _NO_HEADERS for each in headers]
        indices = iter(range(self.count, self.count + count))
        try:
            # all() stops at the first None: that record did not fit.
            stopped = not all(map(self._encoder.append, indices, timestamps, keys, values, filled))
        except UnicodeEncodeError:
            stopped = True  # nothing of that record was written
        appended = count - length_hint(indices) - stopped
        self.count += appended
        return appended

    def batch(self) -> bytearray:
        """Return the batch, not compressed."""
        batch: bytearray = self._encoder.build()
        return batch
