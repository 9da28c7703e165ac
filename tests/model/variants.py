"""
The designs and their mutants: what each one does, and what the explorer must find.

An acquisition is a sequence of stages, so most mutants skip or move a stage.
The bounds of a variant are part of it: `safe` means safe within them.
"""

from dataclasses import dataclass, replace
from typing import Literal

Result = Literal["safe", "violation", "hang"]

Stage = Literal[
    "idle",
    "init",  # InitProducerId of the own transactional id
    "tail",  # re-read the claims log: stand down if another task claimed after us
    "claim",  # append a claim per partition
    "read",  # read the claims log through the own claim
    "read-stale",  # BUG: a view of the claims log from before the own claim
    "fence",  # InitProducerId of every earlier claimant, then tombstone their claims
    "fetch",  # OffsetFetch with require_stable
    "fetch-unstable",  # BUG: OffsetFetch without require_stable
    "wait-idle",  # wait until no other id has an open transaction
    "registry-read",  # read the claimant out of the metadata of the shadow offset
    "registry-fence",
    "registry-write",
    "run",
    "produce",
    "add-offsets",
    "commit-offsets",
    "end",
]

Stages = tuple[Stage, ...]

Request = Literal[
    "Claim",  # the write to the claims log
    "InitProducerId",  # of another id: a fence
    "AddPartitions",  # not in TV2
    "Produce",
    "AddOffsets",  # not in TV2
    "TxnOffsetCommit",
    "EndTxn",
]
"""The requests that may be late."""

NAIVE: Stages = ("init", "fetch")
CLAIM_LOG: Stages = ("init", "claim", "read", "fence", "fetch")
LIGHT: Stages = ("init", "tail", "claim", "read", "fence", "fetch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    One design with its bounds.

    Attributes:
        expect: What the exploration must find.
        slow: Runs only in the full table.
        acquire: Stages from an assignment to mirroring.
        light: Stages after a suspicious commit, without leaving the source group. Empty: the
            task re-acquires what the source group says is still its own.
        ids: A transactional id names a task, a partition, or one incarnation of a process. With
            incarnations the task is crash-only: any error ends the process, and its successor
            remembers nothing.
        tasks, partitions, records: Size of the world; records are per partition.
        forced: Reassignments that the old owner does not notice.
        graceful: Reassignments that the old owner prepares.
        crash: Processes killed.
        timeout: Transactions in use that the coordinator times out.
        late: Requests that arrive long after the client has given them up, or never.
        resends: Requests that the client sends again in secret when no answer comes: a late
            duplicate may follow a success, and makes the transaction suspicious. librdkafka does
            this. The lane sends nothing again.
        gives_up: Requests that may stay without an answer: their outcome is unknown, and the
            request is late. The lane: every one. Only with an id per incarnation.
        expire: Transactional ids that the coordinator forgets.
        kick: Members that the target group loses.
        aborts: Open transactions aborted by InitProducerId (cuts the fencing livelock).
        refusals: Records that a broker refuses for good, while their transaction is open. Each is
            accepted when it is sent again.
        refused: What a task does then. `exit`: its process exits. `light`: it takes the light
            step. `skip`: BUG: it commits the other records of the transaction. `same-id`: BUG: it
            initialises its id again and resumes from memory.
        generations: Shadow offsets are committed as a member of a group on the target. `source`:
            the assignment ignores this group. `lanes`: this group is the assignment. `late-lanes`:
            BUG: as `lanes`, but with the generation that the client knows at commit time.
        reclaim: A new producer claims again. False: BUG.
        early_release: BUG: a claim is released while its last transaction is open.
        void_own_id: BUG: earlier claims with the own id are tombstoned without a fence.
        bury_first: BUG: earlier claims are tombstoned before their owners are fenced.
        fence_own: The light step fences the previous id of the same process.
        guard: No transaction follows a suspicious commit.
        unknown: What a task does after an unknown outcome: exit, or take the light step.
        believes: BUG: an unanswered request of this kind counts as a success.
        fenced: What a task does when a transactional request is refused.
        same_id: BUG: the light step initialises the previous transactional id again.
        autobump: BUG: an unknown producer id is replaced, and the task continues.
        fuse: Reduction: adding to the transaction and writing are one step.
        tv2: KIP-890 part 2: writes add themselves to the transaction, EndTxn bumps the epoch.
        verify: KIP-890 part 1: brokers verify that a writer's transaction is open.
    """

    expect: Result = "safe"
    slow: bool = False
    acquire: Stages = CLAIM_LOG
    light: Stages = ()
    ids: Literal["task", "partition", "incarnation"] = "task"
    tasks: int = 2
    partitions: int = 1
    records: int = 2
    forced: int = 2
    graceful: int = 1
    crash: int = 0
    timeout: int = 1
    late: int = 0
    expire: int = 0
    kick: int = 0
    aborts: int = 3
    refusals: int = 0
    refused: Literal["exit", "light", "skip", "same-id"] = "exit"
    generations: Literal["source", "lanes", "late-lanes"] | None = None
    reclaim: bool = True
    early_release: bool = False
    void_own_id: bool = False
    bury_first: bool = False
    fence_own: bool = True
    guard: bool = True
    resends: tuple[Request, ...] = ("TxnOffsetCommit", "EndTxn")
    gives_up: tuple[Request, ...] = ("EndTxn",)
    unknown: Literal["exit", "light"] = "exit"
    believes: Request | None = None
    fenced: Literal["exit", "light"] = "exit"
    same_id: bool = False
    autobump: bool = False
    fuse: bool = False
    tv2: bool = False
    verify: bool = True

    @property
    def claims(self) -> bool:
        """Whether ownership is decided by the claims log."""
        return "claim" in self.acquire


DESIGNS = {
    "kip656-naive": Variant(
        expect="violation",
        acquire=("init", "fetch-unstable"),
        forced=1,
        graceful=0,
        timeout=0,
    ),
    "kip656-naive-stable": Variant(
        expect="violation", acquire=NAIVE, forced=1, graceful=0, timeout=0
    ),
    "lease-wait-txn-timeout": Variant(
        expect="violation", acquire=("init", "wait-idle", "fetch"), forced=1, graceful=0
    ),
    "claim-in-offset-metadata": Variant(
        expect="violation",
        acquire=("init", "registry-read", "registry-fence", "registry-write", "fetch"),
        forced=1,
        graceful=0,
        timeout=0,
    ),
    "target-members-src-asgn": Variant(
        expect="violation",
        acquire=NAIVE,
        generations="source",
        forced=1,
        graceful=0,
        timeout=0,
        kick=1,
    ),
    "target-driven-lanes": Variant(acquire=NAIVE, generations="lanes", timeout=0),
    "mut-lanes-late-metadata": Variant(
        expect="violation", acquire=NAIVE, generations="late-lanes", timeout=0
    ),
    "txid-per-partition": Variant(acquire=NAIVE, ids="partition", timeout=0, crash=1, records=1),
    "txid-per-partition-2recs": Variant(acquire=NAIVE, ids="partition", graceful=0),
    "claim-log": Variant(slow=True, records=1),
    "claim-log-2recs": Variant(graceful=0, timeout=0),
    "claim-log-crash": Variant(forced=1, timeout=0, crash=1, records=1),
    "claim-log-pre890": Variant(graceful=0, timeout=0, verify=False),
    "claim-log-3tasks": Variant(slow=True, tasks=3, records=1, graceful=0, timeout=0, fuse=True),
    "claim-log-2parts": Variant(
        slow=True, partitions=2, records=1, graceful=0, timeout=0, fuse=True
    ),
    "claim-log-3moves": Variant(records=1, forced=3, graceful=0, timeout=0, fuse=True),
}

CLAIM_LOG_MUTANTS = {
    "mut-claim-before-init": Variant(
        expect="violation", acquire=("claim", "init", "read", "fence", "fetch")
    ),
    "mut-no-reclaim": Variant(expect="violation", reclaim=False),
    "mut-fetch-before-fence": Variant(
        expect="violation", acquire=("init", "claim", "read", "fetch", "fence")
    ),
    "mut-no-require-stable": Variant(
        expect="violation", acquire=("init", "claim", "read", "fence", "fetch-unstable")
    ),
    "mut-early-release": Variant(expect="violation", early_release=True),
    "mut-stale-log-read": Variant(
        expect="violation", acquire=("init", "claim", "read-stale", "fence", "fetch")
    ),
    "mut-self-void": Variant(
        expect="violation", void_own_id=True, tasks=3, records=1, graceful=0, timeout=0
    ),
}

HAZARDS = {
    "dup-rpc-tv1-noguard": Variant(
        expect="violation", late=1, guard=False, forced=1, graceful=0, timeout=0
    ),
    "dup-rpc-tv1-guard": Variant(late=1, forced=1, timeout=0),
    "dup-rpc-tv2-noguard": Variant(late=1, guard=False, tv2=True, forced=1, graceful=0, timeout=0),
    "dup-rpc-tv1-guard-pre890": Variant(expect="hang", late=1, verify=False, forced=1, timeout=0),
    "txid-expiry-autobump": Variant(
        expect="violation", expire=1, autobump=True, forced=1, graceful=0, timeout=0
    ),
    "txid-expiry-reacquire": Variant(expire=1, forced=1, graceful=0, timeout=0),
}

CRASH_ONLY = Variant(ids="incarnation", forced=1, graceful=0, timeout=0)
"""What the engine does: an id per incarnation, and any error ends the process."""

LIGHT_STEP = replace(CRASH_ONLY, light=LIGHT, late=1, fuse=True)
"""The same with the light step after a suspicious commit, and one late duplicate."""

UNSAFE_LIGHT_STEP = replace(LIGHT_STEP, expect="violation")

REFUSED = replace(CRASH_ONLY, light=LIGHT, refusals=1, refused="light")
"""The same light step after a refused record, from the middle of an open transaction."""

UNSAFE_REFUSED = replace(REFUSED, expect="violation")

ENGINE = {
    "crash-only": replace(CRASH_ONLY, graceful=1, crash=1),
    "crash-only-late": replace(CRASH_ONLY, late=1, fuse=True),
    "crash-only-late-crash": replace(CRASH_ONLY, late=1, crash=1, fuse=True, aborts=6),
    "light-step": replace(LIGHT_STEP, graceful=1, fuse=False),
    "light-step-small": LIGHT_STEP,
    "light-step-timeout": replace(LIGHT_STEP, timeout=1),
    "light-step-crash": replace(LIGHT_STEP, slow=True, crash=1, aborts=6),
    "light-step-2late": replace(LIGHT_STEP, late=2, aborts=6),
    "light-step-2moves": replace(LIGHT_STEP, slow=True, forced=2, graceful=1, aborts=6),
    "light-step-2parts": replace(LIGHT_STEP, slow=True, partitions=2),
    "light-step-pre890": replace(LIGHT_STEP, expect="hang", verify=False, fuse=False),
    "refused-exit": replace(CRASH_ONLY, refusals=1),
    "refused": REFUSED,
    "refused-twice": replace(REFUSED, refusals=2, graceful=1, aborts=6),
    "refused-late": replace(REFUSED, late=1, aborts=6, fuse=True),
    "refused-crash": replace(REFUSED, crash=1, aborts=6, fuse=True),
    "refused-2parts": replace(REFUSED, partitions=2, records=1, aborts=6),
}

SPARE = {
    # Rules that safety does not need; README.md says why, and what they are for.
    "spare-stand-down": replace(
        LIGHT_STEP, graceful=1, light=("init", "claim", "read", "fence", "fetch")
    ),
    "spare-fence-own": replace(LIGHT_STEP, graceful=1, fence_own=False),
    "spare-unknown-exits": replace(LIGHT_STEP, unknown="light", aborts=6),
}

LIGHT_STEP_MUTANTS = {
    "mut-light-ignored": replace(UNSAFE_LIGHT_STEP, guard=False),
    "mut-light-no-reclaim": replace(UNSAFE_LIGHT_STEP, light=("init", "tail", "fetch")),
    "mut-light-claim-before-init": replace(
        UNSAFE_LIGHT_STEP, light=("tail", "claim", "init", "read", "fence", "fetch")
    ),
    "mut-light-no-read": replace(UNSAFE_LIGHT_STEP, light=("init", "tail", "claim", "fetch")),
    "mut-light-stale-log-read": replace(
        UNSAFE_LIGHT_STEP, light=("init", "tail", "claim", "read-stale", "fence", "fetch")
    ),
    "mut-light-fetch-before-fence": replace(
        UNSAFE_LIGHT_STEP, light=("init", "tail", "claim", "read", "fetch", "fence")
    ),
    "mut-light-keep-position": replace(
        UNSAFE_LIGHT_STEP, light=("init", "tail", "claim", "read", "fence")
    ),
    "mut-light-unstable": replace(
        UNSAFE_LIGHT_STEP,
        graceful=1,
        light=("init", "tail", "claim", "read", "fence", "fetch-unstable"),
    ),
    "mut-light-unfenced-unstable": replace(
        UNSAFE_LIGHT_STEP,
        fence_own=False,
        light=("init", "tail", "claim", "read", "fence", "fetch-unstable"),
    ),
    "mut-bury-before-fence": replace(
        CRASH_ONLY, expect="violation", forced=2, crash=1, records=1, bury_first=True, fuse=True
    ),
    "mut-unknown-commit-resend": replace(
        UNSAFE_LIGHT_STEP,
        unknown="light",
        light=("init", "tail", "claim", "read", "fence"),
    ),
}

REFUSED_MUTANTS = {
    "mut-refused-skip": replace(UNSAFE_REFUSED, refused="skip"),
    "mut-refused-same-id": replace(UNSAFE_REFUSED, refused="same-id"),
    "mut-refused-no-reclaim": replace(UNSAFE_REFUSED, light=("init", "tail", "fetch")),
    "mut-refused-fetch-before-fence": replace(
        UNSAFE_REFUSED, light=("init", "tail", "claim", "read", "fetch", "fence")
    ),
    "mut-refused-keep-position": replace(
        UNSAFE_REFUSED, light=("init", "tail", "claim", "read", "fence")
    ),
}
