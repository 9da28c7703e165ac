"""A fake producer as that of our own lane: a failure ends the incarnation, not the process."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from eos_mirror.errors import ProducerFenced, RestartTask, TransactionLost
from eos_mirror.ports import Committed, Delivered, ShadowCommit
from tests.engine.fake_producer import FakeProducer
from tests.engine.requests import NotAcknowledged


class OwnLaneProducer:
    """Implements `ports.TransactionalProducer` over another fake, which repeats no request."""

    def __init__(self, producer: FakeProducer) -> None:
        self._producer = producer

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except ProducerFenced:
            raise
        except NotAcknowledged as exc:
            raise TransactionLost(str(exc), unwritten=[exc.remote]) from exc
        except RestartTask as exc:
            raise TransactionLost(str(exc)) from exc

    def begin(self) -> None:
        """See the port."""
        with self._writing():
            self._producer.begin()

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See the port."""
        with self._writing():
            self._producer.send(run, remote, batch=batch)

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See the port."""
        with self._writing():
            self._producer.send_to(topic, records)

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """See the port."""
        with self._writing():
            return self._producer.flush(within=within)

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """See the port."""
        with self._writing():
            return self._producer.commit(offsets, within=within)

    def close(self) -> None:
        """See the port."""
        self._producer.close()
