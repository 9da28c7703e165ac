"""Engines that break one rule each. Each must be caught, or the state machine proves nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Final, cast
from unittest import mock

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import NewIncarnation, RestartTask
from eos_mirror.ports import Committed, Polled, ShadowCommit, TransactionalProducer, Unstable
from eos_mirror.replication.ownership import Ownership
from eos_mirror.replication.positions import Positions
from eos_mirror.replication.task import MirrorTask
from eos_mirror.replication.transaction import Transaction
from tests.engine.fake_lane import FakeLane
from tests.engine.shadow_group import ShadowGroup

Mutant = Callable[[], AbstractContextManager[object]]
# mutants reach into the engine; that is what they are for
# ruff: noqa: SLF001


def suspicious_commit_ignored() -> AbstractContextManager[object]:
    """Breaks Run 5: the next transaction has the old incarnation."""
    commit = Transaction.commit

    def mutated(self: Transaction, *args: Any, **kwargs: Any) -> int:
        try:
            return commit(self, *args, **kwargs)
        except NewIncarnation:
            self._is_over = False
            return 0

    return mock.patch.object(Transaction, "commit", mutated)


def released_before_the_last_commit() -> AbstractContextManager[object]:
    """Breaks I3: the tombstones come before the last commit."""
    let_go = MirrorTask._let_go

    def mutated(self: MirrorTask, partitions: Sequence[TopicPartition]) -> None:
        self._mode.release(
            [self._hold.owned[p].remote for p in partitions if p in self._hold.owned]
        )
        let_go(self, partitions)

    return mock.patch.object(MirrorTask, "_let_go", mutated)


def position_from_before_the_fence() -> AbstractContextManager[object]:
    """Breaks I6: the offsets are read when the claim is made, not after the fence."""
    claim, resolve = Ownership.claim, Positions.resolve
    early: dict[int, dict[TopicPartition, object]] = {}

    def mutated_claim(self: Ownership, remotes: Sequence[TopicPartition]) -> None:
        target = cast(FakeLane, self._lane).target
        known = early.setdefault(id(target), {})
        known.update(target.shadow_offsets(remotes))
        claim(self, remotes)

    def mutated_resolve(self: Positions, claimed: Sequence[Any]) -> Mapping[TopicPartition, Any]:
        known = early.get(id(self._target), {})
        ask = self._target.shadow_offsets

        def remember(remotes: Sequence[TopicPartition]) -> dict[TopicPartition, object]:
            found = dict(ask(remotes))
            stale = {r: known.pop(r) for r in remotes if r in known}
            return found | {r: o for r, o in stale.items() if not isinstance(o, Unstable)}

        with mock.patch.object(self._target, "shadow_offsets", remember):
            return resolve(self, claimed)

    return _both(
        mock.patch.object(Ownership, "claim", mutated_claim),
        mock.patch.object(Positions, "resolve", mutated_resolve),
    )


class _Stubborn:
    """A producer that repeats a commit after an error."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """Do what `commit_transaction(); commit_transaction()` does."""
        try:
            return self._producer.commit(offsets, within=within)
        except RestartTask:
            return self._producer.commit({}, within=within)


def committed_again_after_an_error() -> AbstractContextManager[object]:
    """Breaks Run 6: after a failure the same producer commits what is open."""
    begin = Transaction.__init__

    def mutated(self: Transaction, producer: TransactionalProducer, *args: Any, **kw: Any) -> None:
        begin(self, _Stubborn(producer), *args, **kw)

    return mock.patch.object(Transaction, "__init__", mutated)


def claims_not_made_again() -> AbstractContextManager[object]:
    """Breaks I7: the new incarnation writes under the claims of the old one."""
    return mock.patch.object(Ownership, "renew", Ownership.new_incarnation)


def no_writer_fenced() -> AbstractContextManager[object]:
    """Breaks the first half of I4: earlier claims are tombstoned, but their writers not fenced."""
    return mock.patch.object(Ownership, "_fence", return_value=None)


def unread_claims_buried() -> AbstractContextManager[object]:
    """Breaks the second half of I4: claims that were never read are tombstoned, too."""
    claim = Ownership.claim

    def mutated(self: Ownership, remotes: Sequence[TopicPartition]) -> None:
        claim(self, remotes)
        live = self._log.read_through(None)
        foreign = [
            key
            for key, record in live.items()
            if record.claim.remote in remotes
            and record.claim.transactional_id != self.transactional_id
        ]
        self._log.tombstone(foreign)

    return mock.patch.object(Ownership, "claim", mutated)


def claims_read_before_the_own() -> AbstractContextManager[object]:
    """Breaks I5: the log is read first, and the claim is appended afterwards."""
    append = Ownership._append

    def mutated(self: Ownership, remotes: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        before = dict(self._log.read_through(None))
        own = append(self, remotes)
        vars(self._log)["read_through"] = lambda _: before
        return own

    def restored(self: Ownership, remotes: Sequence[TopicPartition]) -> None:
        try:
            claim(self, remotes)
        finally:
            vars(self._log).pop("read_through", None)

    claim = Ownership.claim
    return _both(
        mock.patch.object(Ownership, "_append", mutated),
        mock.patch.object(Ownership, "claim", restored),
    )


def unstable_offsets_taken() -> AbstractContextManager[object]:
    """Breaks the second half of I6: an older committed offset is used as the position."""
    fetch = ShadowGroup.fetch
    return mock.patch.object(
        ShadowGroup,
        "fetch",
        lambda self, remote, require_stable: fetch(  # noqa: ARG005
            self, remote, require_stable=False
        ),
    )


def undecided_data_overlooked() -> AbstractContextManager[object]:
    """Lets markers of the previous writer land between our records."""
    return mock.patch.object(Positions, "_is_settled", return_value=True)


def end_taken_past_a_fault() -> AbstractContextManager[object]:
    """Moves the position past a record that could not be mirrored."""
    take = MirrorTask._take

    def mutated(self: MirrorTask, polled: Polled) -> None:
        take(self, Polled(runs=polled.runs))
        for partition, end in polled.ends.items():
            owned = self._hold.owned.get(partition)
            if owned is not None and end > owned.position.next_offset:
                owned.position = Position(end, owned.position.leader_epoch)
                self._hold.at_end[partition] = owned
        take(self, Polled(faults=polled.faults))

    return mock.patch.object(MirrorTask, "_take", mutated)


@contextmanager
def _both(
    first: AbstractContextManager[object], second: AbstractContextManager[object]
) -> Iterator[None]:
    with first, second:
        yield


MUTANTS: Final[Mapping[str, Mutant]] = {
    mutant.__name__.replace("_", " "): mutant
    for mutant in (
        suspicious_commit_ignored,
        released_before_the_last_commit,
        position_from_before_the_fence,
        committed_again_after_an_error,
        claims_not_made_again,
        no_writer_fenced,
        unread_claims_buried,
        claims_read_before_the_own,
        unstable_offsets_taken,
        undecided_data_overlooked,
        end_taken_past_a_fault,
    )
}
