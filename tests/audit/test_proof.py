"""A proof says of every record that it matches, differs, or cannot be compared any more."""

from dataclasses import replace

from eos_mirror.audit.compacted import CompactedComparison, Compaction, Why
from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.digest import Folder
from eos_mirror.audit.examine import Matched, fold_range, match_range
from eos_mirror.audit.extent import Cause, PartitionSnapshot, Unproven
from eos_mirror.audit.proof import PartitionProof, Prover
from eos_mirror.audit.proof_compacted import CompactedProver
from eos_mirror.audit.ranges import Range
from eos_mirror.audit.worker import Keys, Unreadable
from tests.audit.in_memory_log import InMemoryLog
from tests.audit.one_partition import (
    FOLDER,
    MOST,
    RECORDS,
    SOURCE,
    TARGET,
    AtOnce,
    CountingWorker,
    difference,
    shelves,
    snapshot,
)

WHOLE = Range(
    source=SOURCE,
    start=0,
    end=RECORDS,
    target=TARGET,
    target_start=1_000,
    target_end=1_000 + RECORDS,
)


def prove(
    clerk: CountingWorker,
    *,
    frozen: PartitionSnapshot | None = None,
    sample: float = 1.0,
    folder: Folder | None = None,
) -> PartitionProof:
    """Prove a partition; a second snapshot has the log starts of that time."""

    def look_again(one: PartitionSnapshot) -> PartitionSnapshot:
        return replace(one, source_start=clerk.source.start, target_start=clerk.target.start)

    prover = Prover(
        pool=AtOnce(), examiner=clerk, look_again=look_again, sample=sample, folder=folder
    )
    (proof,) = prover.prove([frozen or snapshot(clerk)], max_offsets=MOST)
    return proof


def test_an_exact_copy_is_looked_at_once() -> None:
    """Every range of an exact copy is compared once, and none is examined."""
    source, target = shelves()
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    proof = prove(clerk)
    assert proof.matched == RECORDS
    assert not proof.differences
    assert not proof.unproven
    assert proof.folded is None
    assert (clerk.looked, clerk.examined) == (RECORDS // MOST, 0)


def test_folds_of_ranges_are_those_of_the_partition() -> None:
    """Folds of both sides are joined in the order of the log, whatever order ranges return in."""
    source, target = shelves()
    target[1_012], target[1_077] = target[1_077], target[1_012]
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    proof = prove(clerk, folder=FOLDER)
    assert proof.folded == fold_range(WHOLE, clerk.source, clerk.target, FOLDER)
    assert not proof.folded.equal
    assert [one.kind for one in proof.differences] == [Kind.REORDERED] * 2
    assert (clerk.looked, clerk.examined) == (RECORDS // MOST, 2)


def test_what_a_sample_leaves_out_is_said() -> None:
    """Every offset is compared or reported as not sampled."""
    source, target = shelves()
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    proof = prove(clerk, sample=0.3)
    assert (clerk.looked, proof.matched) == (3, 30)
    assert {gap.cause for gap in proof.unproven} == {Cause.NOT_SAMPLED}
    assert sum(gap.end - gap.start for gap in proof.unproven) == RECORDS - 30


def test_only_what_is_not_equal_is_looked_at_closely() -> None:
    """Only three of ten ranges are examined, and a record that moved between them is found."""
    source, target = shelves()
    target[1_012], target[1_077] = target[1_077], target[1_012]
    del target[1_050]
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    proof = prove(clerk)
    assert clerk.examined == 3
    assert proof.differences == [
        difference(Kind.REORDERED, 12, 1_077),
        difference(Kind.MISSING, 50, 1_051),
        difference(Kind.REORDERED, 77, 1_012),
    ]
    assert proof.matched == RECORDS - 3


def test_a_copy_too_many_is_found_however_far_from_its_original() -> None:
    """A duplicate is found eighty records later; a record that the source never had is foreign."""
    source, target = shelves()
    shifted = {offset + (offset >= 1_095): value for offset, value in target.items()}
    shifted[1_095] = target[1_015]
    shifted[1_101] = b"never"
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(shifted))
    frozen = replace(snapshot(clerk), target_end=1_102, target_log_end=1_102)
    proof = prove(clerk, frozen=frozen)
    assert proof.differences == [
        difference(Kind.DUPLICATED, 15, 1_095),
        difference(Kind.FOREIGN, 100, 1_101),
    ]
    assert proof.matched == RECORDS


def test_retention_that_passes_during_the_proof_is_no_loss() -> None:
    """Ranges are cut where retention has passed, and expired offsets are reported."""
    source, target = shelves()
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    frozen = snapshot(clerk)
    clerk.source.start = 25
    proof = prove(clerk, frozen=frozen)
    assert proof.matched == RECORDS - 25
    assert not proof.differences
    causes = [(one.start, one.end, one.cause) for one in proof.unproven]
    assert causes == [
        (0, 10, Cause.EXPIRED_ON_SOURCE),
        (10, 20, Cause.EXPIRED_ON_SOURCE),
        (20, 25, Cause.EXPIRED_ON_SOURCE),
    ]


def test_retention_of_the_target_that_passes_during_the_proof_is_no_loss() -> None:
    """Retention of the target is treated as retention of the source is."""
    source, target = shelves()
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    frozen = snapshot(clerk)
    clerk.target.start = 1_013
    proof = prove(clerk, frozen=frozen)
    assert proof.matched == RECORDS - 13
    assert not proof.differences
    assert {one.cause for one in proof.unproven} == {Cause.EXPIRED_ON_TARGET}


class KeyClerk:
    """Compares keys of a compacted partition with scripted answers."""

    def __init__(self, *answers: CompactedComparison | Unreadable) -> None:
        self.answers = list(answers)
        self.asked: list[Keys] = []

    def compare_keys(self, keys: Keys) -> CompactedComparison | Unreadable:
        """See `worker.Work`."""
        self.asked.append(keys)
        return self.answers.pop(0)


def compared(matched: int, *differences: Difference) -> CompactedComparison:
    """Return the comparison of a part of a compacted partition, with one explained record."""
    return CompactedComparison(
        matched=matched, differences=differences, explained={Why.COMPACTED_ON_SOURCE: 1}
    )


def prove_compacted(clerk: KeyClerk, *, max_offsets: int = RECORDS) -> PartitionProof:
    """Prove a compacted partition; the source's log grows by one record before each comparison."""

    def look_again(one: PartitionSnapshot) -> PartitionSnapshot:
        return replace(one, source_log_end=one.source_log_end + 1)

    frozen = replace(
        snapshot(CountingWorker(InMemoryLog({}), InMemoryLog({}))),
        compaction=Compaction(source=True, target=False),
        source_log_end=RECORDS,
    )
    prover = CompactedProver(pool=AtOnce(), examiner=clerk, look_again=look_again)
    (proof,) = prover.prove([frozen], max_offsets=max_offsets)
    return proof


def test_a_compacted_partition_is_blamed_only_after_another_look() -> None:
    """It is compared again up to the new end, as newer records may have replaced missing ones."""
    lost = difference(Kind.FOREIGN, 5, 1_005)
    clerk = KeyClerk(compared(98, lost), compared(99))
    proof = prove_compacted(clerk)
    assert [keys.source_log_end for keys in clerk.asked] == [RECORDS, RECORDS + 1]
    assert not proof.differences
    assert (proof.matched, proof.explained) == (99, {Why.COMPACTED_ON_SOURCE: 1})

    proof = prove_compacted(KeyClerk(*[compared(98, lost)] * 3))
    assert proof.differences == [lost]


def test_a_long_compacted_partition_is_read_in_parts_of_its_keys() -> None:
    """Each key is in exactly one part, and the results of the parts are added."""
    clerk = KeyClerk(*[compared(33)] * 3)
    proof = prove_compacted(clerk, max_offsets=40)
    assert proof.matched == 99
    assert proof.explained == {Why.COMPACTED_ON_SOURCE: 3}
    for digest in (bytes([i]) for i in range(256)):
        assert sum(keys.has(digest) for keys in clerk.asked) == 1


def test_what_cannot_be_read_is_not_called_equal() -> None:
    """An unreadable range is reported with its reason, neither as equal nor as lost."""
    source, target = shelves()
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))

    def refuse(where: Range) -> Matched | Unreadable:
        if where.start == 30:
            return Unreadable(reason="a corrupt batch")
        return match_range(where, clerk.source, clerk.target)

    clerk.match = refuse  # type: ignore[method-assign] # what a broken disk does
    proof = prove(clerk)
    assert proof.matched == RECORDS - MOST
    assert proof.unproven == [
        Unproven(
            partition=SOURCE,
            start=30,
            end=40,
            cause=Cause.UNREADABLE,
            reason="a corrupt batch",
        )
    ]
