"""Translated offsets by brute force: found by reading both topics, not by the offset map."""

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing.checker import Record, read_topic
from tests.mirror.conftest import Site

Offsets = dict[TopicPartition, int]


def everywhere(site: Site, offset: int) -> Offsets:
    """Return the same offset for every partition of the source topic."""
    return {TopicPartition(site.topic, p): offset for p in range(site.partitions)}


def brute_force(source: list[Record], target: list[Record], upstream: int) -> int:
    """Return the downstream offset of the first mirrored record at or after `upstream`."""
    for before, after in zip(source, target, strict=True):
        if before.offset >= upstream:
            return after.offset
    return target[-1].offset + 1


class Truth:
    """Which downstream offsets belong to which upstream offsets, as both topics are now."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.remotes = [TopicPartition(site.remote, p) for p in range(site.partitions)]
        self._sources = read_topic(
            site.source.client_config(), site.topic, partitions=site.partitions
        )
        self._targets = read_topic(
            site.target.client_config(), site.remote, partitions=site.partitions
        )

    def records(self, partition: int) -> list[Record]:
        """Return the records of a source partition."""
        return self._sources[partition]

    def of(self, offsets: Offsets) -> Offsets:
        """Return where a group with these offsets on the source resumes on the target."""
        return {
            TopicPartition(self.site.remote, number): brute_force(
                self._sources[number], self._targets[number], offset
            )
            for (_, number), offset in offsets.items()
        }
