"""Logins to a real broker over TLS, and connections that outlive several sessions."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from eos_mirror.core.records import Position, TopicPartition, TopicRecord
from eos_mirror.ports import ShadowCommit
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.tls import Keys
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.errors import SASL_AUTHENTICATION_FAILED, Refused, Unanswered
from eos_mirror.wire.fetcher import Fetcher, FetchSettings
from eos_mirror.wire.messages import METADATA
from eos_mirror.wire.oauth import fetched_with
from eos_mirror.wire.options import Config, producer_settings, security
from eos_mirror.wire.passing import NOTHING
from eos_mirror.wire.plain_producer import WirePlainProducer
from eos_mirror.wire.producer import WireProducer
from eos_mirror.wire.security import Caller, Security
from tests.wire.sasl_cluster import SESSION_MS, config_of, sasl_cluster
from tests.wire.token_endpoint import Endpoint, jwt, token_endpoint

pytestmark = pytest.mark.brokers

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PARTITIONS = 3
SESSIONS = 4
ENOUGH_S = 40.0
AHEAD_BYTES = 1 << 20
VALUE = bytes(20_000)
"""An answer has many TLS records."""

ConfigOf = Callable[[str], Config]


@pytest.fixture(scope="module")
def cluster(keys: Keys) -> Iterator[KafkaCluster]:
    """A broker with every mechanism."""
    with sasl_cluster(keys) as cluster:
        yield cluster


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A token endpoint; nothing is known of an earlier one."""
    fetched_with.cache_clear()
    with token_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def config(cluster: KafkaCluster, keys: Keys, endpoint: Endpoint) -> ConfigOf:
    """Return a client configuration by mechanism."""
    return lambda mechanism: config_of(cluster, keys.authority, mechanism, endpoint.url)


class Logins:
    """Counts the logins of each connection."""

    def __init__(self, how: Security, *, again: bool = True) -> None:
        self._how = how
        self._again = again
        self.count: Counter[Caller] = Counter()

    def security(self) -> Security:
        """Return how connections are made and counted."""
        return Security(tls=self._how.tls, login=self._log_in)

    @property
    def most(self) -> int:
        """Return how often one connection has logged in."""
        return max(self.count.values(), default=0)

    def _log_in(self, caller: Caller, until: float) -> float | None:
        assert self._how.login is not None
        self.count[caller] += 1
        again_s = self._how.login(caller, until)
        return again_s if self._again else None


def learn(how: Security, cluster: KafkaCluster) -> None:
    """Ask for a topic."""
    client = Cluster(cluster.bootstrap, how, client_id="test")
    try:
        client.learn(["no-such-topic"], until=time.monotonic() + 10)
    finally:
        client.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_logs_in_over_tls(cluster: KafkaCluster, config: ConfigOf, mechanism: str) -> None:
    """User names and passwords may have any characters."""
    learn(security(config(mechanism)), cluster)


@pytest.mark.parametrize("mechanism", [one for one in MECHANISMS if one != "OAUTHBEARER"])
def test_a_wrong_password_is_refused(
    cluster: KafkaCluster, config: ConfigOf, mechanism: str
) -> None:
    """One error names the broker, the mechanism and the user, and no secret."""
    wrong = {**config(mechanism), "sasl.password": "hunter4"}

    with pytest.raises(Refused, match=f"log in with {mechanism} as ") as fault:
        learn(security(wrong), cluster)

    assert fault.value.code == SASL_AUTHENTICATION_FAILED
    assert str(fault.value).startswith(cluster.bootstrap)
    assert "hunter" not in str(fault.value)


def test_an_expired_token_is_refused(
    cluster: KafkaCluster, config: ConfigOf, endpoint: Endpoint
) -> None:
    """The error has the broker's reason."""
    endpoint.body = {"access_token": jwt(valid_s=10, issued_at=time.time() - 3600)}

    with pytest.raises(Refused, match=r"log in with OAUTHBEARER.*invalid_token") as fault:
        learn(security(config("OAUTHBEARER")), cluster)

    assert endpoint.body["access_token"] not in str(fault.value)


def test_the_connections_of_a_process_share_a_token(
    cluster: KafkaCluster, config: ConfigOf, endpoint: Endpoint
) -> None:
    """An identity provider limits how often it is asked."""
    for _ in range(3):
        learn(security(config("OAUTHBEARER")), cluster)

    assert len(endpoint.asked) == 1


class SecondLogin:
    """Every login has to be repeated before the next request, and the second one fails."""

    def __init__(self, how: Security, fault: Exception) -> None:
        self._how = how
        self._fault = fault
        self.count: Counter[Caller] = Counter()

    def security(self) -> Security:
        """Return how connections are made."""
        return Security(tls=self._how.tls, login=self._log_in)

    def _log_in(self, caller: Caller, until: float) -> float:
        assert self._how.login is not None
        self.count[caller] += 1
        if self.count[caller] > 1:
            raise self._fault
        self._how.login(caller, until)
        return 0.0


def test_a_connection_that_breaks_during_a_login_is_replaced(
    cluster: KafkaCluster, config: ConfigOf
) -> None:
    """Nothing was sent but the login, so the request goes over a new connection."""
    logins = SecondLogin(security(config("PLAIN")), Unanswered("closed"))
    client = Cluster(cluster.bootstrap, logins.security(), client_id="test")
    for _ in range(3):
        client.learn([], until=time.monotonic() + 10)
    client.close()

    assert sorted(logins.count.values()) == [1, 2, 2]


def test_a_connection_whose_next_login_is_refused_is_not_used_again(
    cluster: KafkaCluster, config: ConfigOf
) -> None:
    """The refusal is an error of the request, which was not sent; the broker closes it then."""
    logins = SecondLogin(security(config("PLAIN")), Refused(SASL_AUTHENTICATION_FAILED, "again"))
    client = Cluster(cluster.bootstrap, logins.security(), client_id="test")
    client.learn([], until=time.monotonic() + 10)

    with pytest.raises(Refused, match="again"):
        client.learn([], until=time.monotonic() + 10)
    client.learn([], until=time.monotonic() + 10)
    client.close()

    assert sorted(logins.count.values()) == [1, 2]


@pytest.mark.long
def test_a_broker_ends_a_session_without_a_login(cluster: KafkaCluster, config: ConfigOf) -> None:
    """The tests below would prove nothing on a broker that does not."""
    logins = Logins(security(config("PLAIN")), again=False)
    client = Cluster(cluster.bootstrap, logins.security(), client_id="test")
    connection = client.any_broker(until=time.monotonic() + 10)
    fields = {
        "topics": [],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }

    def closed() -> bool:
        try:
            connection.call(METADATA, fields, until=time.monotonic() + 10)
        except Unanswered:
            return True
        return False

    wait_until(closed, within=timedelta(milliseconds=5 * SESSION_MS), what="the session ends")
    client.close()


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_connections_live_through_sessions_while_records_flow(
    cluster: KafkaCluster, config: ConfigOf, endpoint: Endpoint, mechanism: str
) -> None:
    """No connection is replaced, and every record arrives once and in order."""
    endpoint.valid_s = 4.0  # the end of a token ends a session, too
    topic = f"flow-{mechanism}".lower()
    cluster.create_topic(topic, PARTITIONS)
    writes, reads = Logins(security(config(mechanism))), Logins(security(config(mechanism)))
    until = time.monotonic() + ENOUGH_S

    with closing(Flow(cluster, topic, writes.security(), reads.security())) as flow:
        while min(writes.most, reads.most) < SESSIONS:
            assert time.monotonic() < until, f"logins: {writes.count} {reads.count}"
            flow.write()
            flow.read()
        flow.finish(until)

    assert flow.has_read == flow.written
    assert flow.most_unanswered > 1, "requests were not pipelined; the test proves nothing"
    assert len(writes.count) == len(reads.count) == 2, "to ask, and to write or to read"
    if mechanism == "OAUTHBEARER":
        assert len(endpoint.asked) > 1, "no token was renewed; the test proves nothing"


@pytest.mark.long
def test_transactions_are_committed_through_sessions(
    cluster: KafkaCluster, config: ConfigOf
) -> None:
    """The coordinators' connections log in between requests, and no outcome is unknown."""
    cluster.create_topic("transactions")
    logins = Logins(security(config("SCRAM-SHA-256")))
    until = time.monotonic() + ENOUGH_S
    producer = WireProducer(
        Cluster(cluster.bootstrap, logins.security(), client_id="writer"),
        "mirror-1",
        group="shadow",
        settings=producer_settings({}),
        limits=lambda _: NOTHING,
        written={},
    )
    commits = 0
    with closing(producer):
        while logins.most < SESSIONS:
            assert time.monotonic() < until, f"logins: {logins.count}"
            commits += 1
            producer.begin()
            producer.send_to("transactions", [TopicRecord(None, b"%d" % commits, None, 0)])
            shadow_offset = ShadowCommit(position=Position(commits), metadata="")
            offsets = {TopicPartition("transactions", 0): shadow_offset}
            producer.commit(offsets, within=timedelta(seconds=10))

    shadow = cluster.admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions("shadow")])
    [found] = shadow["shadow"].result(30).topic_partitions
    assert found.offset == commits > 10
    assert len(logins.count) <= 3, "a connection was replaced"


class Flow:
    """Writes and reads a topic at the same time, on connections of its own."""

    def __init__(self, cluster: KafkaCluster, topic: str, writes: Security, reads: Security):
        self.written: dict[int, list[bytes]] = {p: [] for p in range(PARTITIONS)}
        self.has_read: dict[int, list[bytes]] = {p: [] for p in range(PARTITIONS)}
        self.most_unanswered = 0
        self._topic = topic
        target = Cluster(cluster.bootstrap, writes, client_id="writer")
        self._producer = WirePlainProducer(
            target, settings=producer_settings({}), limits=lambda _: NOTHING, written={}
        )
        source = Cluster(cluster.bootstrap, reads, client_id="reader")
        self._fetcher = Fetcher(source, FetchSettings())
        positions = {TopicPartition(topic, p): Position(0) for p in range(PARTITIONS)}
        self._fetcher.start(positions)

    def write(self) -> None:
        """Queue records of all partitions; each request follows before the last answer."""
        outbox = self._producer.outbox
        if outbox.unacknowledged_bytes < AHEAD_BYTES:
            records = []
            for partition, values in self.written.items():
                values.append(len(values).to_bytes(8) + VALUE)
                records.append(TopicRecord(None, values[-1], None, partition))
            self._producer.send_to(self._topic, records)
        self._producer.pump()
        unanswered = [one.unanswered for one in outbox.connections]
        self.most_unanswered = max(self.most_unanswered, *unanswered, 0)

    def read(self) -> None:
        """Read what has arrived."""
        polled = self._fetcher.take()
        assert polled is None or not polled.faults
        for run in () if polled is None else polled.runs:
            values = [value or b"" for value in run.decoded().values]
            self.has_read[run.partition.partition] += values

    def finish(self, until: float) -> None:
        """Write and read what is left."""
        self._producer.flush(within=timedelta(seconds=20))
        while self.has_read != self.written and time.monotonic() < until:
            self.read()

    def close(self) -> None:
        """Close all connections."""
        self._producer.close()
        self._fetcher.close()
