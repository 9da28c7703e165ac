"""
Our own lane on plain sockets: its variants, its mutants, and the rules it could do without.

Every request has a deadline. One that stays unanswered is never sent again, and arrives late or
never. Its incarnation ends: the light step has a new id, new claims, fences, and a stable read.
The suffix is the protocol: tv2 is KIP-890 part 2.
"""

from dataclasses import replace

from tests.model.variants import CRASH_ONLY, LIGHT, Request, Stages

TRANSACTION: tuple[Request, ...] = (
    "AddPartitions",
    "Produce",
    "AddOffsets",
    "TxnOffsetCommit",
    "EndTxn",
)
ACQUISITION: tuple[Request, ...] = ("Claim", "InitProducerId")
REINIT: Stages = ("init", "fetch")
"""What the prototypes did after any failure."""

TV1 = replace(
    CRASH_ONLY,
    light=LIGHT,
    late=1,
    resends=(),
    gives_up=TRANSACTION,
    unknown="light",
    fenced="light",
    aborts=6,
)
TV2 = replace(TV1, tv2=True)
BAD = replace(TV1, expect="violation")

LANES = {
    "lane-tv1": TV1,
    "lane-tv2": TV2,
    "lane-graceful-tv1": replace(TV1, slow=True, graceful=1),
    "lane-graceful-tv2": replace(TV2, graceful=1),
    "lane-2late-tv1": replace(TV1, slow=True, late=2),
    "lane-2late-tv2": replace(TV2, late=2),
    "lane-timeout-tv1": replace(TV1, slow=True, timeout=1),
    "lane-timeout-tv2": replace(TV2, timeout=1),
    "lane-crash-tv1": replace(TV1, slow=True, crash=1),
    "lane-crash-tv2": replace(TV2, slow=True, crash=1),
    "lane-2moves-tv1": replace(TV1, slow=True, forced=2),
    "lane-2moves-tv2": replace(TV2, slow=True, forced=2),
    "lane-2parts-tv1": replace(TV1, slow=True, partitions=2, records=1),
    "lane-2parts-tv2": replace(TV2, partitions=2, records=1),
    "lane-2parts-2late-tv2": replace(TV2, slow=True, partitions=2, records=1, late=2),
    "lane-mixed-tv2": replace(TV2, slow=True, records=1, graceful=1, crash=1, timeout=1),
    "lane-acquisition-tv1": replace(TV1, slow=True, gives_up=(*ACQUISITION, *TRANSACTION)),
    "lane-acquisition-tv2": replace(TV2, gives_up=(*ACQUISITION, *TRANSACTION)),
    "lane-refused-tv1": replace(TV1, slow=True, refusals=1, refused="light"),
    "lane-refused-tv2": replace(TV2, slow=True, refusals=1, refused="light"),
    "lane-pre890-tv1": replace(TV1, slow=True, verify=False),
}

SPARE = {
    # Rules that safety does not need; README.md says why, and what they are for.
    "spare-lane-fence-own-tv1": replace(TV1, slow=True, fence_own=False),
    "spare-lane-fence-own-tv2": replace(TV2, slow=True, fence_own=False),
    "spare-lane-same-id-tv1": replace(TV1, slow=True, same_id=True),
    "spare-lane-same-id-tv2": replace(TV2, same_id=True),
    "spare-lane-resend-end-tv2": replace(TV2, resends=("EndTxn",), guard=False),
    "spare-lane-resend-offsets-tv2": replace(TV2, resends=("TxnOffsetCommit",), guard=False),
    "spare-lane-resend-fence-tv2": replace(TV2, resends=("InitProducerId",)),
    "spare-lane-believes-add-tv1": replace(TV1, slow=True, believes="AddPartitions"),
    "spare-lane-believes-offsets-tv1": replace(TV1, slow=True, believes="AddOffsets"),
}


UNSTABLE: Stages = (*LIGHT[:-1], "fetch-unstable")

BOTH = {
    "same-id-reinit": replace(BAD, same_id=True, light=REINIT),
    "same-id-after-claim": replace(
        BAD, same_id=True, light=("tail", "claim", "read", "fence", "fetch", "init")
    ),
    "keep-position": replace(BAD, light=("init", "tail", "claim", "read", "fence")),
    "unstable": replace(
        BAD,
        graceful=1,
        acquire=("init", "claim", "read", "fence", "fetch-unstable"),
        light=UNSTABLE,
    ),
    "unfenced-unstable": replace(BAD, fence_own=False, light=UNSTABLE),
    "unknown-produce": replace(BAD, believes="Produce"),
    "unknown-offsets": replace(BAD, believes="TxnOffsetCommit"),
    # TV2: the task expects the epoch after a commit. An abort by the coordinator makes it valid.
    "unknown-continues": replace(BAD, believes="EndTxn"),
}
"""Mutants that break both protocols."""

ORDER = {
    "no-reclaim": replace(BAD, light=("init", "tail", "fetch")),
    "no-read": replace(BAD, light=("init", "tail", "claim", "fetch")),
    "claim-before-init": replace(BAD, light=("tail", "claim", "init", "read", "fence", "fetch")),
    "fetch-before-fence": replace(BAD, light=("init", "tail", "claim", "read", "fetch", "fence")),
    "early-release": replace(BAD, graceful=1, early_release=True),
}
"""What `mut-light-...` already shows for TV1."""

MUTANTS = {
    **{f"mut-lane-{name}-tv1": mutant for name, mutant in BOTH.items()},
    **{f"mut-lane-{name}-tv2": replace(bad, tv2=True) for name, bad in (BOTH | ORDER).items()},
    "mut-lane-same-id-tail-tv2": replace(
        BAD, tv2=True, same_id=True, light=("init", "tail", "fetch"), forced=2, graceful=1
    ),
    "mut-lane-resend-end-tv1": replace(BAD, resends=("EndTxn",), guard=False),
    "mut-lane-resend-offsets-tv1": replace(BAD, resends=("TxnOffsetCommit",), guard=False),
    "mut-lane-believes-add-pre890-tv1": replace(BAD, believes="AddPartitions", verify=False),
    "mut-lane-believes-offsets-pre890-tv1": replace(BAD, believes="AddOffsets", verify=False),
}
