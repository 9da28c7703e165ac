"""Settings that only the client library can judge are faults of the configuration."""

import socket
from pathlib import Path

import pytest

from eos_mirror.driver.client_check import check_clients
from eos_mirror.errors import ConfigError
from tests.driver.fakes import settings_of

SSL = {"A.security.protocol": "SSL"}


def test_clients_that_can_be_made_are_no_fault(tmp_path: Path) -> None:
    """Nothing listens at the addresses: no client connects."""
    check_clients(settings_of(tmp_path, {"A.consumer.max.poll.interval.ms": "5000"}))


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({**SSL, "A.ssl.truststore.type": "PEM", "A.ssl.truststore.location": "/nowhere"},
         [":10: ssl.truststore.location: flow A->B: the source consumer cannot be made: "
          "ssl.ca.location: /nowhere cannot be read: No such file or directory",
          "the source admin cannot be made"]),
        ({"B.security.protocol": "SASL_SSL", "B.sasl.mechanism": "PLAIN"},
         [":9: sasl.mechanism: flow A->B: the target producer cannot be made: ",
          "the target admin cannot be made: "]),
    ],
    ids=["file", "two settings"],
)  # fmt: skip
def test_a_client_that_cannot_be_made_is_named_with_its_lines(
    tmp_path: Path, keys: dict[str, object], says: list[str]
) -> None:
    """Before, this was a traceback of `--check`, or a task that restarted without end."""
    with pytest.raises(ConfigError) as caught:
        check_clients(settings_of(tmp_path, keys))

    assert len(caught.value.faults) == len(says)
    for fault, words in zip(caught.value.faults, says, strict=True):
        assert words in fault


def test_a_trial_asks_for_no_token(tmp_path: Path) -> None:
    """With OAuth, a client sends its secret to the token endpoint as soon as it exists."""
    with socket.create_server(("127.0.0.1", 0)) as endpoint:
        url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/token"
        check_clients(
            settings_of(
                tmp_path,
                {
                    "A.security.protocol": "SASL_PLAINTEXT",
                    "A.sasl.mechanism": "OAUTHBEARER",
                    "A.sasl.oauthbearer.token.endpoint.url": url,
                    "A.sasl.oauthbearer.client.credentials.client.id": "id",
                    "A.sasl.oauthbearer.client.credentials.client.secret": "secret",
                },
            )
        )
        endpoint.settimeout(1)
        with pytest.raises(TimeoutError):
            endpoint.accept()
