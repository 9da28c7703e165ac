"""Fake of `ports.Lane`, over the other fakes."""

from collections.abc import Callable, Collection, Mapping

from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.ports import PlainProducer, RebalanceListener, Source, SourceOffsets
from tests.engine.fake_producer import FakeProducer
from tests.engine.fake_target import FakeTarget


class FakeLane:
    """The source and the producers of one task. The target remembers its producers."""

    def __init__(
        self,
        target: FakeTarget,
        *,
        offsets: SourceOffsets,
        open_source: Callable[[RebalanceListener], Source],
        open_plain_producer: Callable[[], PlainProducer],
    ) -> None:
        self.offsets = offsets
        self.written: Mapping[str, int] = {}
        self.target = target
        self._open_source = open_source
        self._open_plain_producer = open_plain_producer

    def open_source(self, listener: RebalanceListener) -> Source:
        """See the port."""
        return self._open_source(listener)

    def open_producer(self, transactional_id: str) -> FakeProducer:
        """See the port."""
        return self.target.new_producer(transactional_id)

    def open_plain_producer(self) -> PlainProducer:
        """See the port."""
        return self._open_plain_producer()

    def note_limits(self, limits: Mapping[str, TopicLimits]) -> None:
        """See the port."""

    def fence(self, transactional_ids: Collection[str]) -> set[str]:
        """See the port."""
        return self.target.fence(transactional_ids)
