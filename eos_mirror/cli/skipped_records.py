"""What `offsets skip` and `offsets set` print of the records that are not mirrored."""

from collections.abc import Sequence

from eos_mirror.core.plural import counted
from eos_mirror.operate.skip import Skip, SkippedRecord


def described(skip: Skip) -> str:
    """Return the partition, and how many offsets of it, from where to where."""
    count = counted(skip.end - skip.start, "offset")
    return f"{skip.source}: {count} from {skip.start} to {skip.end - 1}"


def listed(records: Sequence[SkippedRecord], skip: Skip) -> str:
    """
    Return a line for each of the first records to skip, and one for the others.

    Args:
        records: The first ones; empty if none can be read.
    """
    lines = [
        f"  {one.offset}: {one.at:%Y-%m-%d %H:%M:%S} UTC, key {_bytes(one.key_bytes)}, "
        f"value {_bytes(one.value_bytes)}"
        for one in records
    ]
    left = skip.end - 1 - (records[-1].offset if records else skip.start - 1)
    if not records:
        lines.append("  the source has no record there that can be read")
    elif left:
        lines.append(f"  and up to {counted(left, 'record')} after them")
    return "".join(f"{line}\n" for line in lines)


def _bytes(size: int | None) -> str:
    return "none" if size is None else counted(size, "byte")
