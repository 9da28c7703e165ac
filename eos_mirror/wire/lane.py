"""Our own lane: batches go from the source's log to the target's log over plain connections."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from eos_mirror.core.flow import Flow
from eos_mirror.core.side import Side
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import NotAuthorized, RestartTask
from eos_mirror.ports import KnownTopic, RebalanceListener, Source, SourceOffsets
from eos_mirror.wire.claims import WireClaimsLog
from eos_mirror.wire.cluster import Cluster, Coordinator, Kind
from eos_mirror.wire.fetcher import Fetcher
from eos_mirror.wire.options import Config, fetch_settings, producer_settings, security
from eos_mirror.wire.passing import NOTHING, PassLimits, pass_limits
from eos_mirror.wire.plain_producer import WirePlainProducer
from eos_mirror.wire.producer import WireProducer
from eos_mirror.wire.security import Tokens
from eos_mirror.wire.source import Pumped, WireSource
from eos_mirror.wire.target_facts import TargetFacts
from eos_mirror.wire.transactions import initialised
from eos_mirror.wire.translate import translated

FENCE_WITHIN_S: Final = 5.0
"""Short, so that the claims log is read again before each attempt: a claimer that was
superseded must not keep aborting the transactions of its successor."""


class Membership(Protocol):
    """How the lane joins the source group: the lane of the client library does it."""

    @property
    def offsets(self) -> SourceOffsets:
        """See `ports.Lane`."""

    def open_source(self, listener: RebalanceListener) -> Source:
        """See `ports.Lane`. Nothing is read through it."""


class WireLane:
    """Implements `ports.Lane`."""

    def __init__(
        self,
        flow: Flow,
        membership: Membership,
        *,
        consumer_config: Config,
        producer_config: Config,
        plain_producer_config: Config,
        tokens: Callable[[Config], Tokens | None] = lambda _: None,
    ) -> None:
        """
        Args:
            consumer_config: Source consumer.
            producer_config: Transactional producer, but for the transactional id.
            plain_producer_config: Idempotent producer without transactions.
            tokens: Returns what makes the tokens of a configuration with AWS_MSK_IAM.
        """
        self._flow = flow
        self._membership = membership
        self._consumer_config = consumer_config
        self._producer_config = producer_config
        self._plain_producer_config = plain_producer_config
        self._tokens = tokens
        self._producer: Pumped | None = None
        self._limits: dict[str, TopicLimits] = {}
        self._written: dict[str, int] = {}
        self.written: Mapping[str, int] = self._written
        self._source: WireSource | None = None

    @property
    def offsets(self) -> SourceOffsets:
        """See `ports.Lane`."""
        return self._membership.offsets

    def open_source(self, listener: RebalanceListener) -> WireSource:
        """See `ports.Lane`."""
        config = self._consumer_config
        fetcher = Fetcher(self._cluster(config), fetch_settings(config))
        self._source = WireSource(
            self._membership.open_source, listener, fetcher, lambda: self._producer
        )
        return self._source

    def topics(self, names: Collection[str]) -> Mapping[str, KnownTopic]:
        """
        Return the topics of which records were read, under the ids with which they were read.

        No broker is asked: a fetch names the id, so no record of another topic can be read.
        """
        ids = {} if self._source is None else self._source.topic_ids
        return {name: KnownTopic(topic_id=ids[name], partitions=0) for name in names if name in ids}

    def open_producer(self, transactional_id: str) -> WireProducer:
        """See `ports.Lane`."""
        with _closed_after_a_failure(self._cluster(self._producer_config)) as cluster:
            producer = WireProducer(
                cluster,
                transactional_id,
                group=self._flow.shadow_group,
                settings=producer_settings(self._producer_config),
                limits=self._limits_of,
                written=self._written,
            )
        self._producer = producer
        return producer

    def open_plain_producer(self) -> WirePlainProducer:
        """See `ports.Lane`."""
        with _closed_after_a_failure(self._cluster(self._plain_producer_config)) as cluster:
            producer = WirePlainProducer(
                cluster,
                settings=producer_settings(self._plain_producer_config),
                limits=self._limits_of,
                written=self._written,
            )
        if isinstance(self._producer, WirePlainProducer):
            self._producer.close()
        self._producer = producer
        return producer

    def open_claims(self, topic: str, *, topic_id: str) -> WireClaimsLog:
        """Return the claims log; see `WireClaimsLog`."""
        return WireClaimsLog(self._cluster(self._producer_config), topic, topic_id=topic_id)

    def open_facts(self) -> TargetFacts:
        """Return what reads facts of the copies, on connections of its own."""
        return TargetFacts(lambda: self._cluster(self._producer_config))

    def _cluster(self, config: Config) -> Cluster:
        return Cluster(
            config["bootstrap.servers"],
            security(config, self._tokens(config)),
            client_id=config.get("client.id", "eos-mirror"),
        )

    def note_limits(self, limits: Mapping[str, TopicLimits]) -> None:
        """See `ports.Lane`."""
        self._limits.update(limits)

    def _limits_of(self, topic: str) -> PassLimits:
        """Return what a topic accepts now; nothing passes while that is not known."""
        limits = self._limits.get(topic)
        return NOTHING if limits is None else pass_limits(limits, now_ms=_wall_ms())

    def fence(self, transactional_ids: Collection[str]) -> set[str]:
        """See `ports.Lane`."""
        cluster = self._cluster(self._producer_config)
        timeout_ms = producer_settings(self._producer_config).transaction_timeout_ms
        until = time.monotonic() + FENCE_WITHIN_S
        fenced = set()
        try:
            for i, one in enumerate(transactional_ids):
                # one id that is not decided leaves time for the others
                share_s = (until - time.monotonic()) / (len(transactional_ids) - i)
                if self._is_fenced(cluster, one, timeout_ms, time.monotonic() + share_s):
                    fenced.add(one)
        finally:
            cluster.close()
        return fenced

    def _is_fenced(self, cluster: Cluster, one: str, timeout_ms: int, until: float) -> bool:
        try:
            with translated(f"fence {one}", side=Side.TARGET):
                initialised(Coordinator(cluster, Kind.TRANSACTION, one), timeout_ms, until=until)
        except NotAuthorized:
            raise
        except RestartTask:
            return False
        return True


@contextmanager
def _closed_after_a_failure(cluster: Cluster) -> Iterator[Cluster]:
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
