"""
Who writes a target partition: claim-log fencing.

acquire: claim, read the log through the claims, fence every earlier claimer, tombstone the fenced
claims, read the stable shadow offsets, and only then hand a partition to the loop.

Invariants (docs/guarantees.md has the argument, tests/model the exhaustive check):
    I1: An incarnation finished init_transactions before any claim of it was appended.
    I2: It puts a partition into a transaction only under its own claim.
    I3: It tombstones its claim only after its last transaction on the partition was decided.
    I4: A foreign claim is tombstoned only after it was read and its incarnation fenced.
    I5: Reading through its own claim shows every earlier one.
    I6: Fence before read, and read stable offsets only.
    I7: A new incarnation makes all claims again.
"""

import os
import socket
import uuid
from collections.abc import Iterable, Mapping, Sequence

from eos_mirror.core.claims import Claim, ClaimRecord, earlier_claims, superseded
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RestartTask, TargetUnavailable
from eos_mirror.ports import ClaimsLog, Lane, TaskContext, TransactionalProducer
from eos_mirror.replication.config import ACQUIRE_BUDGET, Fencing

FENCE_ATTEMPTS = 5
"""Of 5 s each: a task that stands still for 30 s would be killed, and could not say why."""


class Ownership:
    """The incarnation of this task and its claims."""

    def __init__(
        self,
        flow: Flow,
        lane: Lane,
        log: ClaimsLog,
        context: TaskContext,
        *,
        fencing: Fencing = Fencing.CLAIMS,
    ) -> None:
        self._flow = flow
        self._lane = lane
        self._log = log
        self._context = context
        self._fencing = fencing
        self._claims: dict[TopicPartition, tuple[str, int]] = {}
        self._ids: set[str] = set()
        self._sequence = 0
        self._host = f"{socket.gethostname()}:{os.getpid()}"
        self.incarnation = ""
        self.fences = 0

    @property
    def transactional_id(self) -> str:
        """Transactional id of the current incarnation."""
        return self._flow.transactional_id(self.incarnation)

    def new_incarnation(self) -> TransactionalProducer:
        """Initialise a new transactional id (A0). Every claim must be made again."""
        self.incarnation = uuid.uuid4().hex
        self._ids.add(self.transactional_id)
        with self._context.watch("initialise", ACQUIRE_BUDGET):
            return self._lane.open_producer(self.transactional_id)

    def claim(self, remotes: Sequence[TopicPartition]) -> None:
        """
        Make these partitions ours: A1 to A5.

        Raises:
            RestartTask: Another task claimed after us, or the log cannot be read.
        """
        if self._fencing is not Fencing.CLAIMS:
            return
        with self._context.watch("claim", ACQUIRE_BUDGET):
            own = self._append(remotes)
            live = self._log.read_through(max(own.values()))
            earlier = earlier_claims(live, own, self.transactional_id)
            self._fence(earlier, own)
            self._log.tombstone(sorted(earlier))

    def _append(self, remotes: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        claims = []
        for remote in remotes:
            self._sequence += 1
            claims.append(
                Claim(
                    remote=remote,
                    transactional_id=self.transactional_id,
                    sequence=self._sequence,
                    slot=self._context.slot,
                    host=self._host,
                )
            )
        offsets = self._log.append(claims)
        self._claims.update({c.remote: (c.key, offsets[c.key]) for c in claims})
        return {claim.remote: offsets[claim.key] for claim in claims}

    def _fence(self, earlier: Mapping[str, Claim], own: Mapping[TopicPartition, int]) -> None:
        alive = {claim.transactional_id for claim in earlier.values()}
        for attempt in range(FENCE_ATTEMPTS):
            if not alive:
                break
            if attempt:
                # a claim that was tombstoned meanwhile needs no fence; a claim after ours wins
                live = self._log.read_through(None)
                self._stand_down_if_superseded(live, own)
                alive &= {record.claim.transactional_id for record in live.values()}
            fenced = self._lane.fence(alive) if alive else set()
            self.fences += len(fenced)
            for transactional_id in sorted(fenced):
                self._context.event("incarnation.fenced", {"transactional_id": transactional_id})
            alive -= fenced
        if alive:
            raise TargetUnavailable(
                f"could not fence {sorted(alive)}: the target does not decide their transactions"
            )

    def _stand_down_if_superseded(
        self, live: Mapping[str, ClaimRecord], own: Mapping[TopicPartition, int]
    ) -> None:
        lost = superseded(live, own, self._ids)
        if lost:
            names = ", ".join(sorted(map(str, lost)))
            raise RestartTask(f"{self._flow} {names}: claimed by another task after us")

    def renew(self) -> TransactionalProducer:
        """
        Return a new incarnation with the same partitions, without leaving the group.

        Raises:
            RestartTask: Another task claimed after us: nothing may be claimed back.
        """
        if self._fencing is Fencing.CLAIMS and self._claims:
            with self._context.watch("read the claims", ACQUIRE_BUDGET):
                live = self._log.read_through(None)
            held = {remote: offset for remote, (_, offset) in self._claims.items()}
            self._stand_down_if_superseded(live, held)
        remotes = list(self._claims)
        producer = self.new_incarnation()
        if remotes:
            # the claims of our previous incarnation are in the log, so it is fenced like any other
            self.claim(remotes)
        return producer

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """Tombstone our claims. The last transaction on these partitions is already decided."""
        keys = [self._claims.pop(remote)[0] for remote in remotes if remote in self._claims]
        if keys:
            with self._context.watch("release", ACQUIRE_BUDGET):
                self._log.tombstone(keys)
