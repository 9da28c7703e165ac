"""Answers of the admin client that no broker gives on demand."""

from concurrent.futures import Future
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import NotAuthorized, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka import metadata as metadata_module
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import ClusterMetadata, milliseconds_of
from eos_mirror.kafka.reconnecting import ReconnectingClient

ORDERS = TopicPartition("orders", 0)
SILENT = TopicPartition("silent", 0)


class Admin:
    """Answers with these offsets in order, and repeats the last one. None: no answer."""

    def __init__(self, *offsets: int | None) -> None:
        self._offsets = list(offsets)
        self.looks = 0

    def poll(self, _: float) -> int:
        """Call nothing: no login is refused."""
        return 0

    def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, "Future[Any]"]:
        """Answer with the next offset for every partition."""
        offset = self._offsets.pop(0) if len(self._offsets) > 1 else self._offsets[0]
        answer: Future[Any] = Future()
        if offset is not None:
            answer.set_result(SimpleNamespace(offset=offset))
        return dict.fromkeys(wanted, answer)

    def list_topics(self, _topic: str | None, **_: object) -> Any:
        """Count a request for leaders."""
        self.looks += 1
        return SimpleNamespace(topics={})


class OneSilent(Admin):
    """The leader of SILENT hangs; so does the broker that is asked for the leaders."""

    def __init__(self) -> None:
        super().__init__(5)

    def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, "Future[Any]"]:
        """Answer with an offset for the other partitions."""
        answers = super().list_offsets(wanted)
        for one in wanted:
            if one.topic == SILENT.topic:
                answers[one] = Future()
                answers[one].set_result(SimpleNamespace(offset=OFFSET_INVALID))
        return answers

    def list_topics(self, _topic: str | None, **_: object) -> Any:
        """Count a request for leaders, which times out."""
        self.looks += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 (public name)


class Denied(Admin):
    """Refuses requests for offsets, because a right is missing."""

    def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, "Future[Any]"]:
        """Answer with an authorization error for every partition."""
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        return dict.fromkeys(wanted, answer)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A future that never completes is not waited for longer than the request may take."""
    monkeypatch.setattr(metadata_module, "GRACE_S", 0.0)


def metadata_with(admin: Admin) -> ClusterMetadata:
    """Return the metadata of a target that answers like this admin client."""
    config = {"bootstrap.servers": "127.0.0.1:1"}
    metadata = ClusterMetadata(config, side=Side.TARGET, patience=timedelta(milliseconds=400))
    fake: ReconnectingClient[Any] = ReconnectingClient(lambda _: admin, config)
    metadata.connection = fake
    return metadata


def test_an_answer_without_an_offset_is_asked_for_again() -> None:
    """An answer without an offset, seen during a leader change, is not the end of a log."""
    admin = Admin(OFFSET_INVALID, 5)

    assert metadata_with(admin).ends([ORDERS]) == {ORDERS: 5}
    assert admin.looks == 1, "the client keeps asking the previous leader"


def test_a_question_without_an_answer_is_asked_again() -> None:
    """A request without an answer is retried, as in every other outage."""
    assert metadata_with(Admin(None, 5)).ends([ORDERS]) == {ORDERS: 5}


def test_a_partition_that_never_says_its_offset_is_unavailable() -> None:
    """A partition without an offset is not treated as empty, nor as ending at -1001."""
    with pytest.raises(TargetUnavailable, match="orders-0"):
        metadata_with(Admin(OFFSET_INVALID)).ends([ORDERS])


def test_offsets_that_came_are_kept_when_the_rest_is_asked_in_vain() -> None:
    """If one leader hangs, and is also asked for the leaders, the other offsets are kept."""
    admin = OneSilent()

    found, reasons = metadata_with(admin).offsets_or_reasons(
        [ORDERS, SILENT], OffsetSpec.latest(), within=timedelta(milliseconds=200)
    )

    assert found == {ORDERS: 5}
    assert reasons.keys() == {SILENT}
    assert type(reasons[SILENT]) is TargetUnavailable
    assert admin.looks > 1, "it was asked only once; the test proves nothing"


def test_a_right_that_is_missing_is_not_asked_for_again() -> None:
    """A missing right is not requested again: a person grants it, and not within seconds."""
    admin = Denied()

    found, reasons = metadata_with(admin).offsets_or_reasons(
        [ORDERS], OffsetSpec.latest(), within=timedelta(seconds=60)
    )

    assert not found
    assert isinstance(reasons[ORDERS], NotAuthorized)
    assert admin.looks == 1


def test_an_answer_that_never_comes_is_an_outage_with_a_name() -> None:
    """The error names the request: a task that exited for it once logged only `TimeoutError`."""
    never: Future[Any] = Future()
    with (
        pytest.raises(SourceUnavailable, match="describe topics: no answer"),
        translated("describe topics", side=Side.SOURCE),
    ):
        never.result(0.01)


@pytest.mark.parametrize(
    ("at", "at_ms"),
    [
        ("2023-11-14T22:13:20.123+00:00", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123001+00:00", 1_700_000_000_124),
        ("1969-12-31T23:59:59+00:00", 0),
    ],
)
def test_a_time_is_asked_for_in_whole_milliseconds(at: str, at_ms: int) -> None:
    """Rounded up: no record before the time counts. Negative numbers ask for other offsets."""
    assert milliseconds_of(datetime.fromisoformat(at)) == at_ms
