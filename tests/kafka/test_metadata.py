"""Answers of the admin client that no broker gives on demand."""

from concurrent.futures import Future
from datetime import timedelta
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
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.reconnecting import ReconnectingClient

ORDERS = TopicPartition("orders", 0)
SILENT = TopicPartition("silent", 0)


class Admin:
    """Answers with these offsets, one after the other; the last one for ever. None: never."""

    def __init__(self, *offsets: int | None) -> None:
        self._offsets = list(offsets)
        self.looks = 0

    def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, "Future[Any]"]:
        """The next one for every partition."""
        offset = self._offsets.pop(0) if len(self._offsets) > 1 else self._offsets[0]
        answer: Future[Any] = Future()
        if offset is not None:
            answer.set_result(SimpleNamespace(offset=offset))
        return dict.fromkeys(wanted, answer)

    def list_topics(self, _topic: str | None, **_: object) -> Any:
        """Looks for leaders."""
        self.looks += 1
        return SimpleNamespace(topics={})


class OneSilent(Admin):
    """The leader of SILENT stands still; so does the broker that knows the leaders."""

    def __init__(self) -> None:
        super().__init__(5)

    def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, "Future[Any]"]:
        """An offset for the others."""
        answers = super().list_offsets(wanted)
        for one in wanted:
            if one.topic == SILENT.topic:
                answers[one] = Future()
                answers[one].set_result(SimpleNamespace(offset=OFFSET_INVALID))
        return answers

    def list_topics(self, _topic: str | None, **_: object) -> Any:
        """In vain."""
        self.looks += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 (public name)


class Denied(Admin):
    """May not be asked."""

    def list_offsets(self, wanted: dict[Any, Any], **_: object) -> dict[Any, "Future[Any]"]:
        """No offset for anybody."""
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        return dict.fromkeys(wanted, answer)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A future that never completes is not waited for longer than the request may take."""
    monkeypatch.setattr(metadata_module, "GRACE_S", 0.0)


def metadata_with(admin: Admin) -> ClusterMetadata:
    """Of a target that answers so."""
    metadata = ClusterMetadata({}, side=Side.TARGET, patience=timedelta(milliseconds=400))
    fake: ReconnectingClient[Any] = ReconnectingClient(lambda _: admin, {})
    metadata._client = fake  # noqa: SLF001
    return metadata


def test_an_answer_without_an_offset_is_asked_for_again() -> None:
    """Seen while the leader of a partition was replaced; it is no end of a log."""
    admin = Admin(OFFSET_INVALID, 5)

    assert metadata_with(admin).ends([ORDERS]) == {ORDERS: 5}
    assert admin.looks == 1, "the client goes on asking the leader that was"


def test_a_question_without_an_answer_is_asked_again() -> None:
    """As every other outage is."""
    assert metadata_with(Admin(None, 5)).ends([ORDERS]) == {ORDERS: 5}


def test_a_partition_that_never_says_its_offset_is_unavailable() -> None:
    """Not empty, and not at an end of -1001."""
    with pytest.raises(TargetUnavailable, match="orders-0"):
        metadata_with(Admin(OFFSET_INVALID)).ends([ORDERS])


def test_offsets_that_came_are_kept_when_the_rest_is_asked_in_vain() -> None:
    """One leader stands still, and the client happens to ask it who the leaders are."""
    admin = OneSilent()

    found, reasons = metadata_with(admin).offsets_or_reasons(
        [ORDERS, SILENT], OffsetSpec.latest(), within=timedelta(milliseconds=200)
    )

    assert found == {ORDERS: 5}
    assert reasons.keys() == {SILENT}
    assert type(reasons[SILENT]) is TargetUnavailable
    assert admin.looks > 1, "it was asked only once; the test proves nothing"


def test_a_right_that_is_missing_is_not_asked_for_again() -> None:
    """It comes from a person, not within seconds."""
    admin = Denied()

    found, reasons = metadata_with(admin).offsets_or_reasons(
        [ORDERS], OffsetSpec.latest(), within=timedelta(seconds=60)
    )

    assert not found
    assert isinstance(reasons[ORDERS], NotAuthorized)
    assert admin.looks == 1


def test_an_answer_that_never_comes_is_an_outage_with_a_name() -> None:
    """The client promised one in time; a task that ended for it said only `TimeoutError`."""
    never: Future[Any] = Future()
    with (
        pytest.raises(SourceUnavailable, match="describe topics: no answer"),
        translated("describe topics", side=Side.SOURCE),
    ):
        never.result(0.01)
