"""ACLs of copies: added one by one, and a permanent obstacle is logged once."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from eos_mirror.core.side import Side
from eos_mirror.core.topic_acls import Acl
from eos_mirror.driver import acl_sync
from eos_mirror.driver.acl_sync import AclSync
from eos_mirror.errors import MirrorError, NotAuthorized, SourceUnavailable, TargetUnavailable
from tests.driver.fakes import Events, flow_of

READ = Acl(topic="orders", principal="User:reader", host="*", operation="READ", permission="ALLOW")
ON_THE_COPY = replace(READ, topic="A.orders")
Sync = Callable[..., AclSync]


@dataclass
class FakeAcls:
    """
    `TopicAcls` of one cluster.

    Attributes:
        refused: Why the cluster does not add an ACL.
        has_authorizer: False: the cluster has no access control.
        error: Raised by every request.
        requests: What was called.
    """

    there: set[Acl] = field(default_factory=set)
    refused: dict[Acl, str] = field(default_factory=dict)
    has_authorizer: bool = True
    error: MirrorError | None = None
    requests: list[str] = field(default_factory=list)

    def list(self) -> set[Acl]:
        """See `TopicAcls`."""
        self.requests.append("list")
        if self.error is not None:
            raise self.error
        return set(self.there)

    def add(self, acls: Collection[Acl]) -> dict[Acl, str] | None:
        """See `TopicAcls`."""
        self.requests.append("add")
        if not self.has_authorizer:
            return None
        self.there.update(acl for acl in acls if acl not in self.refused)
        return {acl: self.refused[acl] for acl in acls if acl in self.refused}


@pytest.fixture
def source() -> FakeAcls:
    """One ACL on one topic."""
    return FakeAcls({READ})


@pytest.fixture
def target() -> FakeAcls:
    """No ACLs."""
    return FakeAcls()


@pytest.fixture
def events() -> Events:
    """None yet."""
    return Events()


@pytest.fixture
def routes() -> dict[str, str]:
    """The mirrored topic, and its copy."""
    return {"orders": "A.orders"}


@pytest.fixture
def sync(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: FakeAcls,
    target: FakeAcls,
    routes: dict[str, str],
    events: Events,
) -> Sync:
    """Makes the sync of a flow that mirrors the topics in `routes`."""
    sides = {Side.SOURCE: source, Side.TARGET: target}
    monkeypatch.setattr(acl_sync, "TopicAcls", lambda _config, *, side: sides[side])

    def make(**keys: str) -> AclSync:
        named: Mapping[str, object] = {key.replace("_", "."): value for key, value in keys.items()}
        return AclSync(flow_of(tmp_path, named), lambda: routes, on_event=events)

    return make


def test_a_missing_acl_is_added_once_and_reported(
    sync: Sync, target: FakeAcls, events: Events
) -> None:
    """The second pass finds it on the target."""
    following = sync()
    following.follow()
    following.follow()

    assert target.there == {ON_THE_COPY}
    assert [(name, fields["topic"]) for name, fields in events] == [("acl.added", "A.orders")]


@pytest.mark.parametrize(("mode", "operations"), [("read", {"READ"}), ("full", {"READ", "WRITE"})])
def test_the_right_to_write_is_copied_only_if_the_configuration_says_so(
    sync: Sync, source: FakeAcls, target: FakeAcls, mode: str, operations: set[str]
) -> None:
    """`sync.topic.acls.mode`."""
    source.there.add(replace(READ, operation="WRITE"))
    sync(sync_topic_acls_mode=mode).follow()

    assert {acl.operation for acl in target.there} == operations


def test_a_refused_acl_does_not_hold_up_the_others_and_is_reported_once(
    sync: Sync, source: FakeAcls, target: FakeAcls, events: Events
) -> None:
    """It is reported again if it is refused after a pass without any refusal."""
    source.there.add(replace(READ, principal="User:other"))
    target.refused = {ON_THE_COPY: "why"}
    following = sync()
    for _ in range(3):
        following.follow()
    assert len(events.of("acl.added")) == 1
    assert [event["reason"] for event in events.of("acls.skipped")] == [
        "ALLOW READ on A.orders to User:reader from *: why"
    ]

    target.refused, refused = {}, target.refused
    following.follow()
    target.there, target.refused = set(), refused
    following.follow()
    assert len(events.of("acls.skipped")) == 2


def test_an_acl_of_every_topic_is_listed_and_added_in_one_request(
    sync: Sync, source: FakeAcls, target: FakeAcls, routes: dict[str, str], events: Events
) -> None:
    """A thousand copies get it by their full names; each is reported."""
    routes.update({f"orders-{number}": f"A.orders-{number}" for number in range(1, 1_000)})
    source.there = {replace(READ, topic="*")}
    sync().follow()

    assert (source.requests, target.requests) == (["list"], ["list", "add"])
    assert target.there == {replace(READ, topic=remote) for remote in routes.values()}
    assert {fields["topic"] for fields in events.of("acl.added")} == set(routes.values())
    assert events[0][1].keys() == {"topic", "principal", "host", "operation", "permission"}


def test_many_refused_acls_are_counted(
    sync: Sync, source: FakeAcls, target: FakeAcls, routes: dict[str, str], events: Events
) -> None:
    """A few are named: one ACL of every topic may be refused for each copy."""
    routes.update({f"orders-{number}": f"A.orders-{number}" for number in range(1, 1_000)})
    source.there = {replace(READ, topic="*")}
    target.refused = {replace(READ, topic=remote): "why" for remote in routes.values()}
    sync().follow()

    (skipped,) = events.of("acls.skipped")
    named = skipped["reason"].split("; ")
    assert named[0] == "ALLOW READ on A.orders to User:reader from *: why"
    assert named[5:] == ["and 995 more"]


def test_a_target_without_access_control_is_reported_once(
    sync: Sync, target: FakeAcls, events: Events
) -> None:
    """Nothing was added, so nothing is reported as added."""
    target.has_authorizer = False
    following = sync()
    for _ in range(2):
        following.follow()

    assert events == [("acls.skipped", {"reason": "the target has no access control"})]


def test_a_missing_right_is_reported_once_for_each_reason(
    sync: Sync, source: FakeAcls, events: Events
) -> None:
    """The chore does not fail: only a person can grant the right."""
    following = sync()
    for error in ("DESCRIBE", "DESCRIBE", "ALTER"):
        source.error = NotAuthorized(error)
        following.follow()

    assert [fields["reason"] for _, fields in events] == ["DESCRIBE", "ALTER"]


def test_a_cluster_that_does_not_answer_fails_the_pass(
    sync: Sync, source: FakeAcls, target: FakeAcls, events: Events
) -> None:
    """The scheduler logs it, and the next pass adds what is missing."""
    following = sync()
    source.error = SourceUnavailable("no answer")
    with pytest.raises(SourceUnavailable):
        following.follow()
    source.error, target.error = None, TargetUnavailable("no answer")
    with pytest.raises(TargetUnavailable):
        following.follow()
    target.error = None
    following.follow()

    assert events.names == ["acl.added"]
