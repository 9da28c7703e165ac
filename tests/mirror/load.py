"""Records that flow into a source topic while a test harms the mirror."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site

QUEUED = 10_000
"""Records of the load that wait for the source, at most."""

WITHIN = timedelta(seconds=60)
"""For more records to be offered, and for the last ones to be written when the load stops."""


class Load:
    """
    Produces records into the source topic until it is stopped, about 2,000 a second.

    A source that is unavailable soon slows it down. The records that wait for the source when
    the load stops are written before a test reads where the source ends.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0
        self._unwritten = 0

    def _run(self) -> None:
        producer = Producer(
            {
                **self._site.source.client_config(),
                "linger.ms": 5,
                "queue.buffering.max.messages": QUEUED,
            }
        )
        while not self._stop.wait(0.05):
            for _ in range(100):
                partition = self.count % self._site.partitions
                self._offer(producer, b"%d" % self.count, partition)
                self.count += 1
            producer.poll(0)
        self._unwritten = producer.flush(WITHIN.total_seconds())

    def _offer(self, producer: Producer, value: bytes, partition: int) -> None:
        """Produce a record; a busy source slows the load down and does not end it."""
        while True:
            try:
                producer.produce(self._site.topic, value, partition=partition)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Produce for the length of the block; all records are written when it returns."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()
        assert self._unwritten == 0, "the source did not accept the load"

    def wait_for(self, more: int) -> None:
        """Wait until this many more records were offered."""
        wanted = self.count + more
        wait_until(lambda: self.count >= wanted, within=WITHIN, what="load")
