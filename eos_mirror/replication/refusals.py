"""
Records of a task's partitions that the target refuses: foreseen, met, and searched for.

foreseen: by the limits of the remote topic, it will refuse a record. met: it refused a batch.
searched for: the records of that batch are sent again in smaller ones (core/suspects.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from eos_mirror.core.handlers import FAILED
from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.suspects import (
    Refusal,
    Suspect,
    batch_limit,
    narrowed,
    tried_again,
)
from eos_mirror.core.topic_limits import RefusedRecords, TopicLimits, first_refused, fits
from eos_mirror.errors import RefusedByTarget, RestartTask
from eos_mirror.ports import TaskContext
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.partition import OwnedPartition

FRESH_S = 5.0
"""Limits older than this are read again before they refuse a record: they may have been raised."""


class Refusals:
    """
    What is known about refused records of one task's partitions.

    Invariants:
        A: A record is refused on its own account: limits in effect now exclude it, or the target
           named it, or refused it alone. Never because of its neighbours.
        B: A search survives the process: it is in the orders of every task.
    """

    def __init__(self, config: MirrorConfig, adapters: Adapters, context: TaskContext) -> None:
        self._sender = config.sender
        self._target = adapters.target
        self._lane = adapters.lane
        self._context = context
        self._now = adapters.now
        self._wall_ms = adapters.wall_ms
        self._limits: dict[str, TopicLimits] = {}
        self._learned_at: dict[str, float] = {}
        self._suspects: dict[TopicPartition, Suspect] = {}
        self._found: dict[TopicPartition, Suspect] = {}

    def taken_found(self) -> Mapping[TopicPartition, Suspect]:
        """Return what `met` noted since the last call, for the task's successors."""
        found, self._found = self._found, {}
        return found

    def learn(self, owned: Iterable[OwnedPartition]) -> None:
        """Ask for the limits of these partitions' topics, and adopt what predecessors found."""
        held = list(owned)
        self._ask({one.remote.topic for one in held})
        known = self._context.orders().suspects
        for one in held:
            if one.source not in self._suspects and one.source in known:
                self._suspects[one.source] = known[one.source]
        self.passed({one.source: one for one in held})
        self.between_transactions(held)

    def _ask(self, topics: Iterable[str]) -> None:
        wanted = sorted(set(topics))
        found = self._target.limits(wanted)
        for topic in wanted:
            self._learned_at[topic] = self._now()
            if topic in found:
                self._limits[topic] = found[topic]
        self._lane.note_limits(found)

    def passed(self, owned: Mapping[TopicPartition, OwnedPartition]) -> None:
        """After a commit, clear suspects that lie before the committed positions."""
        if not self._suspects:
            return
        for source, suspect in list(self._suspects.items()):
            one = owned.get(source)
            if one is not None and (one.committed or 0) >= suspect.end:
                del self._suspects[source]
                self.between_transactions([one])

    def between_transactions(self, owned: Iterable[OwnedPartition]) -> None:
        """Set how large the batches of these partitions may be from now on."""
        for one in owned:
            limits = self._limits.get(one.remote.topic)
            suspect = self._suspects.get(one.source)
            one.batch_limit = batch_limit(limits, suspect, self._sender)

    def refresh(self, owned: Iterable[OwnedPartition]) -> None:
        """Between two transactions, read the limits of topics that need small batches again."""
        limited = [one for one in owned if one.batch_limit is not None]
        if limited:
            self._ask({one.remote.topic for one in limited})
            self.between_transactions(limited)

    def split(
        self, owned: OwnedPartition, run: RecordRun
    ) -> tuple[RecordRun | None, RefusedRecords | None]:
        """Return the records before the first refused one, and the refused ones."""
        refused = self._first(owned, run, self._foreseen(owned, run))
        if refused is None:
            return run, None
        records = run.decoded()
        start, stop = records.siblings(refused.start, refused.stop)
        refused = replace(refused, start=start, stop=stop)
        before = owned.position.leader_epoch
        return (records.head(start, after=before) if start else None), refused

    def was_found(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> bool:
        """Return True if the first of these records was searched for; limits do not foresee it."""
        suspect = self._suspects.get(owned.source)
        return suspect is not None and run.decoded().offsets[refused.start] in suspect.refused

    def _foreseen(self, owned: OwnedPartition, run: RecordRun) -> RefusedRecords | None:
        if run.failure:
            return RefusedRecords(start=0, stop=1, code=FAILED, reason=run.failure)
        topic = owned.remote.topic
        refused = self._by_limits(topic, run)
        if refused is not None and self._now() - self._learned_at[topic] > FRESH_S:
            self._ask([topic])
            refused = self._by_limits(topic, run)
        return refused

    def _by_limits(self, topic: str, run: RecordRun) -> RefusedRecords | None:
        limits = self._limits.get(topic)
        if limits is None or fits(run.outline(), limits, now_ms=self._wall_ms()):
            return None
        return first_refused(run.decoded(), topic, limits, self._sender, now_ms=self._wall_ms())

    def _first(
        self, owned: OwnedPartition, run: RecordRun, foreseen: RefusedRecords | None
    ) -> RefusedRecords | None:
        """Return those that are foreseen, or one before them that was searched for."""
        suspect = self._suspects.get(owned.source)
        if suspect is None:
            return foreseen
        for start, offset in enumerate(run.decoded().offsets):
            if foreseen is not None and start >= foreseen.start:
                break
            if offset in suspect.refused:
                return RefusedRecords(
                    start=start, stop=start + 1, code=suspect.code, reason=suspect.reason
                )
        return foreseen

    def met(
        self,
        owned: Iterable[OwnedPartition],
        exc: RefusedByTarget,
    ) -> list[OwnedPartition]:
        """
        Note what the target refused, for this task and its successors.

        Returns:
            The affected partitions.

        Raises:
            RestartTask: None of ours: the offset map, or a partition that was lost.
        """
        met = []
        for one in owned:
            refusal: Refusal | None = exc.refused.get(one.remote)
            if refusal is None:
                continue
            suspect = narrowed(refusal, (one.committed or 0, one.sent_to), self._sender)
            self._suspects[one.source] = self._found[one.source] = suspect
            met.append(one)
            self._context.event("batch.refused", {"partition": str(one.source), **asdict(suspect)})
        if not met:
            raise RestartTask(str(exc)) from exc
        return met

    def try_again(self, partition: TopicPartition) -> None:
        """Allow refused records to be sent again: the cause of the refusal may be gone."""
        suspect = self._suspects.get(partition)
        if suspect is not None:
            self._suspects[partition] = tried_again(suspect)
