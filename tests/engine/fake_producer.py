"""A fake `ports.TransactionalProducer`: librdkafka's behaviour, one request at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from eos_mirror.errors import CommitOutcomeUnknown, RefusedByTarget, RestartTask, TargetUnavailable
from eos_mirror.kafka.transactional_producer import DOUBTFUL_COMMIT_S
from eos_mirror.ports import Committed, Delivered, ShadowCommit
from tests.engine.coordinator import Code, Refused
from tests.engine.gate import Fate
from tests.engine.outbox import Outbox, own_record
from tests.engine.refusing import RefusedBatch, refusal_of
from tests.engine.requests import NotAcknowledged, Requests
from tests.engine.target_cluster import GROUP, TargetCluster
from tests.engine.target_log import Record

INIT_S = 30.0
QUICK_COMMIT_S = 0.004
SLOW_COMMIT_S = 1.0


@dataclass(slots=True)
class Book:
    """Where the records of one partition in the open transaction were written."""

    first: int | None = None
    last: int | None = None
    count: int = 0
    batches: int = 0


class FakeProducer:
    """
    Records wait in the client until `flush`, or until the background thread sends them.

    After a refusal every call fails, as after librdkafka's fatal errors. A commit without offsets
    commits the data alone: librdkafka does that after a failed send_offsets_to_transaction.
    """

    def __init__(
        self,
        cluster: TargetCluster,
        requests: Requests,
        transactional_id: str,
        *,
        repeats: bool = True,
    ) -> None:
        """
        Args:
            repeats: The client sends requests again without saying so, as librdkafka does.
        """
        self._cluster = cluster
        self._requests = requests
        self._waiting = Outbox()
        self._own: dict[TopicPartition, list[Record]] = {}
        self._books: dict[TopicPartition, Book] = {}
        self._added: set[TopicPartition] = set()
        self._repeats = repeats
        self._is_dead = False
        self._was_cut = False
        self._who = requests.insist(
            "init", lambda: cluster.coordinator.init(transactional_id), within_s=INIT_S
        )

    def begin(self) -> None:
        """See the port. Nothing is sent."""
        self._check_alive()
        self._books = {}
        self._added = set()

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See the port."""
        self._check_alive()
        self._waiting.add(run, remote, batch)
        self._books.setdefault(remote, Book()).count += run.count

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See the port."""
        self._check_alive()
        self._own.setdefault(TopicPartition(topic, 0), []).extend(map(own_record, records))

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """See the port."""
        self._check_alive()
        while self._waiting:
            self._send_next(within)
        self._flush_own(within)
        return {
            remote: Delivered(first=book.first, last=book.last, count=book.count)
            for remote, book in self._books.items()
        }

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """See the port."""
        self._check_alive()
        took_s = QUICK_COMMIT_S
        if offsets:
            took_s = max(took_s, self.send_offsets(offsets, within))
        self._flush_own(within)
        if self._added:
            took_s = max(took_s, self._end(within))
        return Committed(doubt=self._doubt(took_s))

    def _doubt(self, took_s: float) -> str | None:
        """Return the doubt that the real producer would report."""
        if self._was_cut:
            return "a connection broke"
        return "it was slow" if took_s > DOUBTFUL_COMMIT_S else None

    def close(self) -> None:
        """See the port."""
        self._is_dead = True

    def send_in_background(self) -> None:
        """Send the oldest batch, as the client's own thread does. Errors show at the next call."""
        if self._waiting and not self._is_dead:
            remote, records = self._waiting[0].remote, self._waiting[0].records
            try:
                self._cluster.coordinator.add(self._who, [remote])
                self._added.add(remote)
                first = self._cluster.produce(self._who, remote, records)
            except Refused as exc:
                self._is_dead = exc.code is not Code.CONCURRENT
                return
            except RefusedBatch:
                return  # the flush raises it
            self._waiting.popleft()
            self._note(remote, first, len(records))

    # ------------------------------------------------------------------ requests

    def _check_alive(self) -> None:
        if self._is_dead:
            raise RestartTask("the producer is dead")

    def _try(self, what: str, request: Callable[[], int]) -> int:
        try:
            return self._requests.insist(what, request, within_s=0)
        except RestartTask:
            self._is_dead = True
            raise

    def _add(self, participant: TopicPartition, within: timedelta) -> None:
        if participant not in self._added:
            coordinator = self._cluster.coordinator
            try:
                self._requests.insist(
                    f"add {participant.topic}",
                    lambda: coordinator.add(self._who, [participant]),
                    within_s=within.total_seconds(),
                )
            except TargetUnavailable:
                raise
            except RestartTask:
                self._is_dead = True
                raise
            self._added.add(participant)

    def _send_next(self, within: timedelta) -> None:
        head = self._waiting[0]
        remote, records = head.remote, head.records
        self._add(remote, within)
        fate = self._requests.gate("produce")
        self._check_alive()
        if not self._cluster.can_write(remote):
            self._is_dead = True
            raise NotAcknowledged(remote)
        if not self._waiting or self._waiting[0] is not head:
            return  # the background thread was quicker
        self._waiting.popleft()
        try:
            first = self._requests.with_fate(
                fate, "produce", lambda: self._cluster.produce(self._who, remote, records)
            )
        except RefusedBatch as exc:
            self._is_dead = True
            refusal = refusal_of(exc, None if head.number is None else head.offsets)
            raise RefusedByTarget(f"produce to {remote}", refused={remote: refusal}) from exc
        except Refused as exc:
            self._is_dead = True
            raise RestartTask(f"produce to {remote}: {exc.code.name}") from exc
        except RestartTask:
            self._is_dead = True
            raise
        again = fate in (Fate.TWICE_CUT, Fate.TWICE_SLOW)
        self._was_cut = self._was_cut or again
        self._note(remote, None if again else first, len(records))

    def _note(self, remote: TopicPartition, first: int | None, count: int) -> None:
        """Note where a batch was written. One that was sent twice has no offsets."""
        book = self._books[remote]
        if book.batches == 0:
            book.first = first
        book.batches += 1
        book.last = None if first is None else first + count - 1

    def _flush_own(self, within: timedelta) -> None:
        while self._own:
            where, records = self._own.popitem()
            self._add(where, within)
            what = "map" if where == self._cluster.map_partition else "quarantine"
            self._try(what, partial(self._cluster.produce, self._who, where, records))

    def send_offsets(
        self, offsets: Mapping[TopicPartition, ShadowCommit], within: timedelta
    ) -> float:
        """Do the first half of `commit`: afterwards the offsets are pending."""
        self._add(GROUP, within)
        return self._twice("offsets", lambda: self._cluster.commit_offsets(self._who, offsets))

    def _end(self, within: timedelta) -> float:
        self._requests.gate("map sent")
        try:
            return self._twice("end", lambda: self._cluster.coordinator.commit(self._who))
        except TargetUnavailable as exc:
            raise CommitOutcomeUnknown(f"{exc} within {within}") from exc

    def _twice(self, what: str, request: Callable[[], None]) -> float:
        """Send a request that may be delayed or doubled; return the seconds that it took."""
        fate = self._requests.gate(what)
        if not self._repeats and fate in (Fate.TWICE_CUT, Fate.TWICE_SLOW):
            fate = Fate.GO
        if fate in (Fate.DELAYED, Fate.TWICE_CUT, Fate.TWICE_SLOW):
            self._cluster.send_later(what, request)
        if fate is Fate.DELAYED:
            fate = Fate.NOT_SENT
        try:
            self._requests.with_fate(fate, what, request)
        except Refused as exc:
            self._is_dead = True
            raise RestartTask(f"{what}: {exc.code.name}") from exc
        self._was_cut = self._was_cut or fate is Fate.TWICE_CUT
        return SLOW_COMMIT_S if fate is Fate.TWICE_SLOW else QUICK_COMMIT_S
