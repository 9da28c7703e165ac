"""Runs the proof of a flow, from its settings."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from eos_mirror.audit.differences import Difference
from eos_mirror.audit.digest import Folder, random_base
from eos_mirror.audit.explained import explain, explanations
from eos_mirror.audit.extent import PartitionSnapshot, plan_extent
from eos_mirror.audit.local import LocalPool
from eos_mirror.audit.mirrored_again import MirroredAgain, begin_inside, mirrored_again
from eos_mirror.audit.plan import TopicPlan, minutes_of, plan_topic
from eos_mirror.audit.proof import PartitionProof, Prover
from eos_mirror.audit.proof_compacted import CompactedProver
from eos_mirror.audit.proven import Proven
from eos_mirror.audit.record_pairs import RecordPair, read_pair
from eos_mirror.audit.report import Report, TopicReport
from eos_mirror.audit.spark import SparkPool
from eos_mirror.audit.worker import Work
from eos_mirror.core.ledger import LedgerEntry
from eos_mirror.core.side import Side
from eos_mirror.errors import ConfigError, RangeUnreadable
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.kafka.ranges import Columns, RangeReader
from eos_mirror.operate.verify_survey import Incomparable, Period, Survey, Surveyor
from eos_mirror.runtime.lifeline import die_with_parent
from eos_mirror.runtime.spark import describe_failure, start_context
from eos_mirror.runtime.spark_settings import spark_settings
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

CLOSE_UPS = 10
"""Differences of each partition whose records are shown."""

UNKNOWN_RECORD_BYTES = 1_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """
    How much there is to compare in all topics of a flow.

    Attributes:
        offsets_count: Offsets of the source, whether or not they hold a record.
        size_bytes: Both sides together, uncompressed; an estimate.
        minutes: Also an estimate.
    """

    topics_count: int
    offsets_count: int
    size_bytes: float
    tasks_count: int
    slots: int
    minutes: float


class Watcher(Protocol):
    """Follows a proof while it runs."""

    def planned(self, planned: Planned) -> None:
        """Take the plan; called before anything is compared."""

    def done(self) -> None:
        """Count a task of the plan that is done."""

    def look(self) -> None:
        """Run repeatedly while no task is done. An exception stops the proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What to verify, and what to report.

    Attributes:
        is_topic: Decides by the name of a source topic.
        period: Period of the records.
        sample: Share of the ranges of each partition, above 0 and at most 1.
        explain: Show the contents of the records of the first differences.
        folds: Compute folds of everything that is read, so that others can check them.
    """

    is_topic: Callable[[str], bool]
    period: Period = field(default_factory=Period)
    sample: float = 1.0
    explain: bool = False
    folds: bool = False


@contextmanager
def auditing(
    settings: FlowSettings,
    spark: Mapping[str, str] | None,
    wanted: Wanted,
    watcher: Watcher,
    proven: Proven,
) -> Iterator[Callable[[], Report]]:
    """
    Run processes that compare, for as long as the block lasts.

    Each call of the yielded function compares everything that the flow has mirrored until then
    with its source.

    Args:
        spark: `spark.*` as written; None uses child processes.
        proven: Ranges that are not compared again; the proof adds to them.

    Raises:
        ConfigError: There is nothing to compare, or no Java.
        MirrorError: Spark did not start, or a cluster did not answer; calls raise it too.
    """
    _require_map(settings)
    surveyor = Surveyor(settings)
    surveys = [surveyor.survey(wanted.is_topic, wanted.period)]  # refused before anything starts
    work = _work(settings)
    with (
        _pool(spark, app=f"eos-mirror verify {settings.flow}", look=watcher.look) as pool,
        closing(RangeReader(work.source, side=Side.SOURCE)) as source,
        closing(RangeReader(work.target, side=Side.TARGET)) as target,
    ):
        common = pool, work, surveyor.look_again, watcher.done
        folder = Folder(work.base) if wanted.folds else None
        verification = Verification(
            plain=Prover(*common, sample=wanted.sample, proven=proven, folder=folder),
            compacted=CompactedProver(*common),
            ledger=partial(read_ledger, work.target, settings.flow),
            source=source,
            target=target,
        )

        def look() -> Report:
            survey = surveys.pop() if surveys else surveyor.survey(wanted.is_topic, wanted.period)
            plans = _plans(survey, source, wanted.sample, proven)
            watcher.planned(_planned(list(plans.values()), slots=pool.slots))
            topics = list(verification.of(survey, plans))
            base = work.base if wanted.folds else None
            return Report(flow=str(settings.flow), topics=topics, explain=wanted.explain, base=base)

        yield look


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """
    Proves several topics of a flow.

    Attributes:
        ledger: Reads the ledger; called when something differs, or a map begins inside its copy.
        source: Reads records to show from the source; `target` does so from the target.
    """

    plain: Prover
    compacted: CompactedProver
    ledger: Callable[[], Sequence[LedgerEntry]]
    source: RangeReader
    target: RangeReader

    def of(self, survey: Survey, plans: Mapping[str, TopicPlan]) -> Iterator[TopicReport]:
        """Prove all copies, and yield a report for each."""
        broken: defaultdict[str, list[Incomparable]] = defaultdict(list)
        for one in survey.incomparable:
            broken[one.target.topic].append(one)
        sources = {one.target.topic: one.source.topic for one in survey.incomparable}
        sources |= {copy: plan.snapshots[0].source.topic for copy, plan in plans.items()}
        for copy in sorted(sources, key=lambda one: (sources[one], one)):
            plan = plans.get(copy)
            partitions = self._partitions(plan)
            yield TopicReport(
                source=sources[copy],
                target=copy,
                partitions=partitions,
                incomparable={str(one.source): one.reason for one in broken[copy]},
                record_pairs=self._record_pairs(partitions),
                again=self._again(plan),
            )

    def _partitions(self, plan: TopicPlan | None) -> list[PartitionProof]:
        if plan is None:
            return []
        prover = self.compacted if plan.is_compacted else self.plain
        proofs = prover.prove(plan.snapshots, max_offsets=plan.max_offsets)
        if not any(one.differences for one in proofs):
            return proofs
        reasons = explanations(self.ledger())
        return [
            explain(proof, snapshot.source_topic_id, reasons)
            for proof, snapshot in zip(proofs, plan.snapshots, strict=True)
        ]

    def _again(self, plan: TopicPlan | None) -> list[MirroredAgain]:
        if plan is None or not begin_inside(plan.snapshots):
            return []
        return mirrored_again(plan.snapshots, self.ledger())

    def _record_pairs(self, partitions: Sequence[PartitionProof]) -> dict[Difference, RecordPair]:
        """Read the records of the first differences of each partition."""
        return {
            one: read_pair(one, self.source, self.target)
            for partition in partitions
            for one in partition.differences[:CLOSE_UPS]
        }


def _work(settings: FlowSettings) -> Work:
    return Work(
        source=clients.source_admin(settings),
        target=clients.target_admin(settings),
        base=random_base(),
        transforms=settings.transforms.chain,
        handler=settings.transforms.handler,
    )


def _planned(plans: Sequence[TopicPlan], *, slots: int) -> Planned:
    return Planned(
        topics_count=len(plans),
        offsets_count=sum(one.offsets_count for one in plans),
        size_bytes=sum(one.size_bytes for one in plans),
        tasks_count=sum(one.tasks_count for one in plans),
        slots=slots,
        minutes=minutes_of(plans, slots=slots),
    )


def _pool(
    spark: Mapping[str, str] | None, *, app: str, look: Callable[[], None]
) -> AbstractContextManager[SparkPool | LocalPool]:
    if spark is None:
        return closing(LocalPool(on_start=partial(die_with_parent, os.getpid()), look=look))
    spark = spark_for_audits(spark)
    context = start_context(spark, app=app)
    pool = SparkPool(context, describe_failure=describe_failure, look=look)
    try:
        pool.wait_for_a_slot(spark["spark.master"])
    except BaseException:
        pool.close()
        raise
    return closing(pool)


def _require_map(settings: FlowSettings) -> None:
    if not settings.exactly_once:
        raise ConfigError(
            f"{settings.flow}: at least once keeps no exact offset map "
            f"(transaction.producer = false)"
        )


def _plans(
    survey: Survey, source: RangeReader, sample: float, proven: Proven
) -> dict[str, TopicPlan]:
    """Return a plan for each copy."""
    return {
        copy: plan_topic(
            snapshots,
            record_bytes=_record_bytes(snapshots, source),
            sample=sample,
            proven=proven,
        )
        for copy, snapshots in survey.copies.items()
    }


def _record_bytes(snapshots: Sequence[PartitionSnapshot], reader: RangeReader) -> float:
    """Return the average size of some records in the middle of the longest partition."""
    longest = max(
        (plan_extent(one).whole for one in snapshots), key=lambda whole: whole.end - whole.start
    )
    middle = (longest.start + longest.end) // 2
    try:
        for chunk in reader.read(longest.source, middle, longest.end):
            return _size_bytes(chunk) / len(chunk.offsets)
    except RangeUnreadable:
        pass  # expired just now; the comparison reports it
    return UNKNOWN_RECORD_BYTES


def _size_bytes(chunk: Columns) -> int:
    fields = [*chunk.keys, *chunk.values]
    fields += [value for headers in chunk.headers for _, value in headers or ()]
    return sum(len(field) for field in fields if field is not None)


def spark_for_audits(user: Mapping[str, str]) -> dict[str, str]:
    """Complete the configured `spark.*` for tasks that end, unlike the mirror's tasks."""
    return {
        **spark_settings(user, tasks_count=1),
        "spark.python.worker.reuse": "true",
        "spark.task.maxFailures": "4",
    }
