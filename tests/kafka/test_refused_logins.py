"""How often a client repeats a login that the brokers refuse."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event

import pytest

from eos_mirror.core.side import Side
from eos_mirror.errors import LoginImpossible, RestartTask
from eos_mirror.kafka import reconnecting
from eos_mirror.kafka.cluster_probe import ClusterProbe, Refusal
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.reconnecting import drop_refused_clients
from eos_mirror.kafka.topics import Topics
from eos_mirror.testing import FaultProxy, KafkaCluster, Security, fault_proxies, wait_until
from eos_mirror.testing.faults import Api

pytestmark = pytest.mark.brokers

SOON = timedelta(seconds=10)
BEFORE_AGAIN = timedelta(seconds=8)
"""A client that is careful about its login connects again after more than 10 s."""

QUIET_S = 3.0
"""By default, a client tries five times in this time."""


@pytest.fixture(scope="module")
def cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster with passwords."""
    with KafkaCluster(name="passwords", security=Security.SASL_PLAIN, proxied=True) as cluster:
        yield cluster


@pytest.fixture
def proxy(cluster: KafkaCluster) -> Iterator[FaultProxy]:
    """The proxy in front of the broker: it sees each login."""
    with fault_proxies(cluster.proxy_ports) as proxies:
        yield proxies[1]


def config_of(cluster: KafkaCluster, secret: str = "wrong") -> dict[str, str]:  # noqa: S107 (that is the point)
    """Return a client configuration with this password."""
    return {
        **cluster.client_config(),
        "bootstrap.servers": cluster.proxied_bootstrap,
        "sasl.password": secret,
        "log_level": "0",
    }


def test_a_probe_repeats_a_refused_login_once_for_each_question(
    cluster: KafkaCluster, proxy: FaultProxy
) -> None:
    """The first question may repeat it: nothing is known yet."""
    probe = ClusterProbe(config_of(cluster))

    def logins() -> int:
        before = proxy.seen(Api.SASL_HANDSHAKE)
        silence = probe.ask(Deadline(SOON))
        assert silence is not None
        assert silence.refusal is Refusal.LOGIN
        Event().wait(QUIET_S)  # what its client does after the answer counts, too
        return proxy.seen(Api.SASL_HANDSHAKE) - before

    logins()
    assert [logins(), logins()] == [1, 1]


def test_a_probe_connects_as_before_once_the_login_is_accepted(
    cluster: KafkaCluster, proxy: FaultProxy
) -> None:
    """Otherwise it would not see for ten seconds that a restarted broker is back."""
    probe = ClusterProbe(config_of(cluster))
    assert probe.ask(Deadline(SOON)) is not None
    probe._config = config_of(cluster, "admin")  # noqa: SLF001 (the password was corrected)
    assert probe.ask(Deadline(SOON)) is None
    assert probe.ask(Deadline(SOON)) is None
    proxy.cut_all()

    wait_until(  # the first question may meet the end of the connection
        lambda: probe.ask(Deadline(timedelta(seconds=5))) is None,
        within=BEFORE_AGAIN,
        what="an answer",
    )


def test_a_refused_client_is_dropped_and_the_login_repeated_once_in_ten_seconds(
    cluster: KafkaCluster, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would repeat the login several times a second, also if nothing is asked."""
    topics = Topics(config_of(cluster), side=Side.SOURCE)
    with pytest.raises(RestartTask):
        topics.list(within=timedelta(seconds=1))
    Event().wait(QUIET_S)  # the client is freed on a thread
    before = proxy.seen(Api.SASL_HANDSHAKE)

    def is_refused() -> None:
        with pytest.raises(LoginImpossible, match="refused the login"):
            topics.list(within=timedelta(seconds=1))

    is_refused()
    assert proxy.seen(Api.SASL_HANDSHAKE) == before
    monkeypatch.setattr(reconnecting, "LOGIN_AGAIN_S", 0.0)
    is_refused()
    Event().wait(QUIET_S)
    assert proxy.seen(Api.SASL_HANDSHAKE) == before + 1
    topics.connection._config["sasl.password"] = "admin"  # noqa: SLF001 (it was corrected)

    assert topics.list(within=SOON) == {}


def test_a_refused_client_that_nothing_uses_is_dropped_too(
    cluster: KafkaCluster, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch of the cluster, or the task, drops all of them."""
    monkeypatch.setattr(reconnecting, "_refusals", {})  # those of other tests: it would not connect
    topics = Topics(config_of(cluster), side=Side.SOURCE)
    wait_until(
        lambda: proxy.seen(Api.SASL_HANDSHAKE) > 0, within=2 * SOON, what="a login that is refused"
    )
    Event().wait(QUIET_S)
    drop_refused_clients()
    Event().wait(QUIET_S)
    before = proxy.seen(Api.SASL_HANDSHAKE)
    Event().wait(QUIET_S)

    assert proxy.seen(Api.SASL_HANDSHAKE) == before
    del topics
