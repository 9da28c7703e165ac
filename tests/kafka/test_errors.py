"""What an error of the client library means for the process that meets it."""

import pytest
from confluent_kafka import KafkaError

from eos_mirror.core.side import Side
from eos_mirror.errors import NotAuthorized, SourceUnavailable, TargetUnavailable, TopicDenied
from eos_mirror.kafka.errors import as_mirror_error

LOGIN = KafkaError._AUTHENTICATION  # noqa: SLF001 (the names of local errors)


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, TopicDenied, "Grant READ and WRITE on the topic"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, NotAuthorized, "Grant READ on the group"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, TargetUnavailable, "Correct the credentials"),
        (LOGIN, TargetUnavailable, "Correct the credentials"),
    ],
)
def test_a_refused_login_is_an_outage_and_a_missing_right_is_not(
    code: int, kind: type[Exception], says: str
) -> None:
    """No process may end for good because a directory of passwords is away for a moment."""
    error = as_mirror_error(KafkaError(code, "no"), "produce", side=Side.TARGET)
    assert type(error) is kind
    assert says in str(error)


def test_the_side_decides_which_cluster_is_unavailable() -> None:
    """The driver names the cluster."""
    error = as_mirror_error(KafkaError(LOGIN, "no"), "x", side=Side.SOURCE)
    assert isinstance(error, SourceUnavailable)
