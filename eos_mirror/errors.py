"""
Every error of eos_mirror, and what its reader has to do.

MirrorError
+- ConfigError              fix the configuration (exit 2); lists every fault with file and line
|  +- AddressInUse         another process listens there
|  +- ClustersSilent       clusters gave no first answer
+- UnsafeError              refused: continuing could lose, double or reorder records (exit 4)
+- RetriableError           same call again; stays inside kafka/
+- NewIncarnation           new transactional id, claim again, read the shadow offsets, continue
+- TransactionLost          the same; the outcome of the open transaction is unknown, or it failed
+- RefusedByTarget          the target refused a batch; send it again in smaller ones
+- TransactionVoid          never commit it; new incarnation, without the partitions that it names
+- RestartTask              exit the process; the supervisor starts another
|  +- ProducerFenced        someone claimed after us, or the coordinator timed us out
|  +- CommitOutcomeUnknown
|  +- SourceUnavailable, TargetUnavailable
|  +- LoginImpossible       no token for the login to a cluster, or it was just refused
|  +- TooFewBrokers         a topic needs more replicas than the cluster has brokers
+- PartitionStopped         this partition only, with its cause; the others continue
|  +- SourceDataLost        truncated, expired or re-created
|  |  +- UnreadableBatch    a batch of the source is corrupt
|  +- RecordRefused         too large, unmappable, refused by the target or by policy
|  +- PositionLost          the shadow offset is gone and the map cannot rebuild it
|  +- MarkersLost           the target lost transaction markers; only an operator can decide
|  +- RightMissing          a right on its topic; it resumes when the right is granted
|  +- ForeignWriter         someone else writes its copy: exactly once cannot hold
+- RangeUnreadable          this part of a log cannot be compared; an audit reports it and continues
+- FatalError               stop the task and report it in status
   +- NotAuthorized
   |  +- TopicDenied        on one topic; the task restarts without it
   +- ForeignRecord         an internal topic of the flow has a record that is not ours

The message of an error says what failed, where (flow, partition, next_offset) and what to do.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, ClassVar


def fields_of(exc: BaseException) -> dict[str, str]:
    """
    Return the fields of an event that reports an error.

    `cause` is the class, for programs. `reason` is one line for people; it names the class only of
    an error that eos_mirror does not raise on purpose.
    """
    cause, text = type(exc).__name__, " ".join(str(exc).split())
    reason = text if isinstance(exc, MirrorError) else f"unexpected {cause}: {text}"
    return {"cause": cause, "reason": reason}


class MirrorError(Exception):
    """Base of every error that eos_mirror raises on purpose."""

    exit_code: ClassVar[int] = 1
    """Exit code of a command that fails with this error."""


class ConfigError(MirrorError):
    """
    The configuration cannot be used. Nothing was written to any cluster.

    Args:
        faults: One line each: the place (file and line where known), the fault, the fix.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults: Sequence[str] = faults


class ClustersSilent(ConfigError):
    """
    A verb got no first answer from clusters.

    Args:
        faults: One line for each of them.
        aliases: Their names.
    """

    def __init__(self, *faults: str, aliases: Set[str]) -> None:
        super().__init__(*faults)
        self.aliases = aliases


class AddressInUse(ConfigError):
    """Another process listens on an address of the configuration. A run that stands by waits."""


class UnsafeError(MirrorError):
    """Refused: the present state of the clusters would break the guarantee. Nothing was written."""

    exit_code: ClassVar[int] = 4


class RetriableError(MirrorError):
    """The same call may succeed if it is repeated. Never leaves kafka/."""


class NewIncarnation(MirrorError):
    """
    The last commit is good, but a late duplicate of it may exist.

    Take a new transactional id, claim again and read the shadow offsets before the next
    transaction. The group membership is kept.
    """


class TransactionLost(MirrorError):
    """
    The open transaction failed, or its outcome is unknown. At least once: the open batch.

    Take a new incarnation, as after `NewIncarnation`: nothing is sent or committed from memory.

    Args:
        reason: One sentence.
        unwritten: Remote partitions that did not acknowledge records in time. Check whether they
            can be written before the next transaction, which would fail in the same way.
    """

    def __init__(self, reason: str, *, unwritten: Collection[Any] = ()) -> None:
        super().__init__(reason)
        self.unwritten = unwritten


class RefusedByTarget(MirrorError):
    """
    The target refused batches of some partitions, and stored none of their records.

    Exactly once: the transaction cannot be committed. Take a new incarnation, as after
    `NewIncarnation`; what was sent is read again. At least once: all other records have arrived.
    In both modes, send the records of these partitions again in smaller batches to find the
    refused one.

    Args:
        reason: One sentence.
        refused: The refusal (`core.suspects.Refusal`) by remote partition.
    """

    def __init__(self, reason: str, *, refused: Mapping[Any, Any]) -> None:
        super().__init__(reason)
        self.refused = refused


class TransactionVoid(MirrorError):
    """
    The records of the open transaction landed where they must not: it may never be committed.

    Take a new incarnation, as after `NewIncarnation`, and stop these partitions.

    Args:
        faults: `PartitionStopped` by source partition.
    """

    def __init__(self, faults: "Mapping[Any, PartitionStopped]") -> None:
        super().__init__("; ".join(map(str, faults.values())))
        self.faults = faults


class RestartTask(MirrorError):
    """Exit this process. Its successor reads the truth from the shadow offsets."""


class ProducerFenced(RestartTask):
    """Another incarnation claimed a partition after us, or the coordinator timed us out."""


class CommitOutcomeUnknown(RestartTask):
    """The transaction may or may not have been committed: only the shadow offsets show which."""


class SourceUnavailable(RestartTask):
    """The source cluster did not answer within the deadline."""


class TargetUnavailable(RestartTask):
    """The target cluster did not answer within the deadline."""


class LoginImpossible(RestartTask):
    """
    There is no login to a cluster now.

    It was refused, and is repeated after 10 s; or there is no token: no signer, no region or no
    credentials; or a certificate or a key cannot be read.
    """


class TooFewBrokers(RestartTask):
    """The cluster has fewer brokers than a new topic needs replicas. The topic is not created."""


class PartitionStopped(MirrorError):
    """One partition cannot continue; the others do. An operator has to act."""


class SourceDataLost(PartitionStopped):
    """The source no longer has the next record: truncated, expired or re-created."""


class UnreadableBatch(SourceDataLost):
    """
    A batch of the source must be decoded and cannot be: its checksum or its records are wrong.

    Args:
        reason: One sentence.
        before: The records of the same run before it (`core.records.RecordRun`); None without any.
    """

    def __init__(self, reason: str, *, before: Any = None) -> None:
        super().__init__(reason)
        self.before = before


class RecordRefused(PartitionStopped):
    """A record that cannot be copied unchanged: too large, unmappable or refused."""


class PositionLost(PartitionStopped):
    """The shadow offset is gone although the partition was mirrored before."""


class MarkersLost(PartitionStopped):
    """
    A transaction on the target was decided, but not all of its markers were written.

    It hangs, or it is split: its records and its shadow offset do not match.
    """


class RightMissing(PartitionStopped):
    """A right on the topic of the partition, or on its copy, is missing or was withdrawn."""


class ForeignWriter(PartitionStopped):
    """
    A record landed where only ours may be, or the target lost the end of the partition.

    Exactly once does not hold for this partition until its topic is mirrored again.
    """


class RangeUnreadable(MirrorError):
    """An audit cannot read a part of a log: it is gone, corrupt, or the client cannot decode it."""


class FatalError(MirrorError):
    """The task cannot continue, and starting it again would not help."""


class NotAuthorized(FatalError):
    """A principal lacks a right. The message names the operation and the resource."""


class TopicDenied(NotAuthorized):
    """
    A right on a topic is missing.

    The task exits its process. Its successor checks its rights first, and stops only the
    partitions of this topic, with `RightMissing`.
    """


class ForeignRecord(FatalError):
    """A record of an internal topic was not written by eos_mirror."""
