"""A proof counts the source records that have no copy, or several, on purpose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from eos_mirror.audit import worker
from eos_mirror.audit.compacted import Compaction
from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import Kind
from eos_mirror.audit.digest import Folder
from eos_mirror.audit.extent import PartitionSnapshot
from eos_mirror.audit.proof import PartitionProof, Prover
from eos_mirror.audit.proof_compacted import CompactedProver
from eos_mirror.audit.proven import Proven
from eos_mirror.audit.worker import Work
from eos_mirror.core.handlers import HandlerSpec, Message
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import Stretch
from eos_mirror.core.side import Side
from eos_mirror.core.transforms import FILTER, TOMBSTONE, Predicate, Transform
from tests.audit.in_memory_log import InMemoryLog
from tests.audit.one_partition import FOLDER, SOURCE, TARGET, AtOnce

COUNT, MOST = 60, 7
"""Records of the source, and offsets of a range at most."""

LIVE = Transform(kind=FILTER, predicate=Predicate(kind=TOMBSTONE))
ORIGINALS = {n: None if n % 5 == 0 else b"%d" % n for n in range(COUNT)}
KEPT = [n for n in ORIGINALS if n % 5]
"""What the filter leaves."""


class Twice:
    """A message handler that makes two copies of 1, 11, 21 and so on, and none of 2, 12, 22."""

    def handle(self, message: Message) -> Iterable[Message]:
        """See `handlers.MessageHandler`."""
        return [message] * {1: 2, 2: 0}.get(message.offset % 10, 1)


HANDLED = [n for n in KEPT for _ in range({1: 2, 2: 0}.get(n % 10, 1))]
"""What the handler makes of it: the offset of the original of each copy."""


def logs(monkeypatch: pytest.MonkeyPatch, copies: Mapping[int, bytes]) -> None:
    """Let tasks read the originals, and these copies."""
    found = {Side.SOURCE: InMemoryLog(ORIGINALS), Side.TARGET: InMemoryLog(copies)}
    monkeypatch.setattr(worker, "_reader", lambda _config, *, side: found[side])
    monkeypatch.setattr(worker, "_handler", lambda _spec: Twice())


def values(originals: Sequence[int]) -> dict[int, bytes]:
    """Return the value of each copy by its offset."""
    return {offset: b"%d" % n for offset, n in enumerate(originals)}


def work(handler: HandlerSpec | None = None) -> Work:
    """Return the work of the tasks of a flow with a filter, and perhaps a handler."""
    return Work(source={}, target={}, base=12345, transforms=(LIVE,), handler=handler)


HANDLER = HandlerSpec(path="words.Twice")


def snapshot(originals: Sequence[int], *, end: int = COUNT) -> PartitionSnapshot:
    """Return the snapshot of a partition with copies of these originals."""
    tail = MapTail.empty(0, downstream=0)
    tail.add([Stretch(n, 1, originals.count(n)) for n in sorted(set(originals))], 0)
    tail.advance(end)
    return PartitionSnapshot(
        source=SOURCE, source_start=0, target=TARGET, target_start=0, target_end=len(originals),
        source_log_end=COUNT, target_log_end=len(originals), offsets=OffsetMap([], tail),
    )  # fmt: skip


def prove(
    examiner: Work,
    originals: Sequence[int],
    *,
    folder: Folder | None = None,
    proven: Proven | None = None,
) -> PartitionProof:
    """Prove a partition with copies of these originals."""
    prover = Prover(
        pool=AtOnce(), examiner=examiner, look_again=lambda one: one, folder=folder,
        proven=proven or Proven(),
    )  # fmt: skip
    (proof,) = prover.prove([snapshot(originals)], max_offsets=MOST)
    return proof


FILTERED = CopyCounts(filtered=COUNT // 5)
BOTH = CopyCounts(filtered=COUNT // 5 + COUNT // 10, expanded=COUNT // 10)


@pytest.mark.parametrize("folder", [None, FOLDER], ids=["plain", "folds"])
def test_a_filter_and_a_handler_are_counted_in_every_range(
    monkeypatch: pytest.MonkeyPatch, folder: Folder | None
) -> None:
    """Each source record is counted once, also at the borders of ranges."""
    logs(monkeypatch, values(KEPT))
    proof = prove(work(), KEPT, folder=folder)
    assert (proof.matched, proof.differences, proof.copies) == (len(KEPT), [], FILTERED)

    logs(monkeypatch, values(HANDLED))
    proof = prove(work(HANDLER), HANDLED, folder=folder)
    assert (proof.matched, proof.differences, proof.copies) == (len(HANDLED), [], BOTH)
    assert proof.matched == COUNT - BOTH.filtered + BOTH.expanded


def test_a_range_that_is_examined_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before the first difference does not count twice."""
    logs(monkeypatch, {**values(HANDLED), 9: b"?"})
    proof = prove(work(HANDLER), HANDLED)
    assert [one.kind for one in proof.differences] == [Kind.ALTERED]
    assert proof.copies == BOTH


def test_what_is_proven_keeps_its_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second proof counts the ranges that it does not read again."""
    logs(monkeypatch, {**values(HANDLED), 9: b"?"})
    proven = Proven()
    prove(work(HANDLER), HANDLED, proven=proven)
    kept = [one.copies for one in proven.ranges]
    assert sum(kept, CopyCounts()).filtered < BOTH.filtered
    logs(monkeypatch, values(HANDLED))
    proof = prove(work(HANDLER), HANDLED, proven=proven)
    assert (proof.differences, proof.copies) == ([], BOTH)
    (whole,) = proven.ranges
    assert whole.copies == BOTH


def test_a_compacted_topic_counts_each_record_of_the_range_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not once for each part of the keys, and nothing that was read beyond the range."""
    logs(monkeypatch, values(KEPT))
    cut = KEPT.index(41)
    frozen = replace(
        snapshot(KEPT[:cut], end=41),
        compaction=Compaction(source=True, target=True),
        target_log_end=len(KEPT),
    )
    prover = CompactedProver(pool=AtOnce(), examiner=work(), look_again=lambda one: one)
    (proof,) = prover.prove([frozen], max_offsets=MOST)
    assert proof.copies == CopyCounts(filtered=9)
