"""
The takeovers and their mutants: what each one does, and what the explorer must find.

Most mutants leave out or move one step of the command.
"""

from dataclasses import dataclass, replace
from typing import Literal

from tests.model.search import Result

Direction = Literal["from mm2", "to mm2"]

ADOPT = (
    "members",
    "fence",
    "find",
    "stop",
    "members again",
    "fence again",
    "growth",
    "commit",
    "note",
    "done",
)
HAND_OVER = ("members", "claim", "read", "note", "mark", "store", "start", "done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    A takeover with its bounds.

    Attributes:
        expect: What the exploration must find.
        stages: What the command does, in order.
        exactly_once: MirrorMaker 2 writes in transactions, with its positions.
        suspended: MirrorMaker 2 may stall for longer than its session: its group does not show it.
        torn_start: Its task may start long after its worker has read that it is not stopped.
        starts: So often its worker is started again.
        kills: So often the command is killed.
        clean: It stores its position before it stops. Otherwise it writes records twice itself.
        looks_back: The command finds out that it was done before.
        from_stored: BUG: the copy is continued at the stored position, not at its end.
    """

    expect: Result = "safe"
    direction: Direction = "from mm2"
    stages: tuple[str, ...] = ADOPT
    exactly_once: bool = True
    suspended: bool = True
    torn_start: bool = False
    starts: int = 2
    kills: int = 1
    clean: bool = False
    looks_back: bool = True
    from_stored: bool = False


def without(stages: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """Return the stages without these."""
    return tuple(stage for stage in stages if stage not in names)


FROM_MM2 = Variant()
KILLED = replace(FROM_MM2, exactly_once=False, suspended=False, starts=1)
PLAIN = replace(KILLED, clean=True, starts=2)
TO_MM2 = Variant(direction="to mm2", stages=HAND_OVER, suspended=False, kills=2)
BROKEN = replace(FROM_MM2, expect="violation")
BROKEN_BACK = replace(TO_MM2, expect="violation")

VARIANTS = {
    "adopt": FROM_MM2,
    "adopt-at-least-once": PLAIN,
    "adopt-at-least-once-killed": KILLED,
    "hand-over": TO_MM2,
    "hand-over-at-least-once": replace(TO_MM2, exactly_once=False, clean=True),
    # What no command can exclude: docs/migrate-from-mm2.md says so.
    "limit-start-torn": replace(BROKEN, torn_start=True),
    "limit-suspended-at-least-once": replace(BROKEN, exactly_once=False),
    "mut-adopt-no-fence": replace(BROKEN, stages=without(ADOPT, "fence", "fence again"), starts=1),
    "mut-adopt-no-second-fence": replace(BROKEN, stages=without(ADOPT, "fence again")),
    "mut-adopt-no-stop": replace(BROKEN, stages=without(ADOPT, "stop")),
    "mut-adopt-members-once": replace(
        PLAIN, expect="violation", stages=without(ADOPT, "members again")
    ),
    "mut-adopt-no-growth": replace(BROKEN, stages=without(ADOPT, "growth")),
    "mut-adopt-stop-after-fence": replace(
        BROKEN,
        stages=("members", "fence", "find", "fence again", "stop", "growth", "commit", "done"),
    ),
    "mut-adopt-from-stored": replace(KILLED, expect="violation", from_stored=True),
    "mut-hand-over-no-claim": replace(BROKEN_BACK, stages=without(HAND_OVER, "claim")),
    "mut-hand-over-no-mark": replace(BROKEN_BACK, stages=without(HAND_OVER, "mark")),
    "mut-hand-over-mark-last": replace(
        BROKEN_BACK,
        stages=("members", "claim", "read", "note", "store", "start", "mark", "done"),
    ),
    "mut-hand-over-start-first": replace(
        BROKEN_BACK,
        stages=("members", "claim", "read", "note", "mark", "start", "store", "done"),
    ),
    "mut-hand-over-sets-back": replace(BROKEN_BACK, looks_back=False),
}
