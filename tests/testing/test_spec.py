"""How a specification becomes a server.properties file."""

from pathlib import Path

from eos_mirror.testing.spec import (
    ClusterSpec,
    NodePorts,
    Security,
    properties_text,
    server_properties,
)


def properties(spec: ClusterSpec, node_id: int) -> dict[str, str]:
    """Return the properties of a node whose ports all end in its id."""
    ports = {
        node: NodePorts(
            client=20_000 + node,
            internal=21_000 + node,
            controller=22_000 + node,
            proxied=23_000 + node,
            proxy=24_000 + node,
        )
        for node in spec.node_ids
    }
    return server_properties(spec, node_id, ports=ports, data=Path("/data"))


def test_a_single_node_is_broker_and_controller_without_replication() -> None:
    """A single node has one replica everywhere, and one partition per internal topic."""
    found = properties(ClusterSpec(), 1)

    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == (
        "CLIENT://127.0.0.1:20001,INTERNAL://127.0.0.1:21001,CONTROLLER://127.0.0.1:22001"
    )
    assert found["controller.quorum.voters"] == "1@127.0.0.1:22001"
    assert found["auto.create.topics.enable"] == "false"
    assert {found["transaction.state.log.num.partitions"], found["min.insync.replicas"]} == {"1"}


def test_three_brokers_keep_three_replicas_of_which_two_are_in_sync() -> None:
    """The cluster is set up as in production, so that one broker may die."""
    found = properties(ClusterSpec(nodes=5), 1)

    assert found["default.replication.factor"] == "3"
    assert found["transaction.state.log.replication.factor"] == "3"
    assert found["min.insync.replicas"] == found["transaction.state.log.min.isr"] == "2"


def test_a_separate_controller_is_the_only_voter() -> None:
    """Brokers come and go without an election of controllers."""
    spec = ClusterSpec(nodes=2, controllers="separate")

    assert list(spec.node_ids) == [100, 1, 2]
    assert properties(spec, 1)["process.roles"] == "broker"
    assert properties(spec, 100)["process.roles"] == "controller"
    assert properties(spec, 100)["listeners"] == "CONTROLLER://127.0.0.1:22100"
    assert properties(spec, 2)["controller.quorum.voters"] == "100@127.0.0.1:22100"


def test_a_proxied_listener_advertises_the_proxy() -> None:
    """The broker listens on one port and sends its clients to another."""
    found = properties(ClusterSpec(proxied=True), 1)

    assert "PROXIED://127.0.0.1:23001" in found["listeners"]
    assert "PROXIED://127.0.0.1:24001" in found["advertised.listeners"]


def test_broker_config_wins() -> None:
    """A test can change any setting of ours."""
    spec = ClusterSpec(broker_config={"transaction.state.log.num.partitions": 5, "x": True})

    found = properties(spec, 1)

    assert (found["transaction.state.log.num.partitions"], found["x"]) == ("5", "true")


def test_plain_users_are_known_to_every_client_listener_and_only_there() -> None:
    """Brokers speak among themselves without a login."""
    spec = ClusterSpec(security=Security.SASL_PLAIN, users={"m": "pw"}, proxied=True)

    found = properties(spec, 1)

    for listener in ("client", "proxied"):
        assert 'user_m="pw"' in found[f"listener.name.{listener}.plain.sasl.jaas.config"]
    assert "INTERNAL:PLAINTEXT" in found["listener.security.protocol.map"]


def test_backslashes_survive_a_properties_file() -> None:
    """Java reads a single backslash as the start of an escape."""
    assert properties_text({"a": r"\d"}) == "a=\\\\d\n"
