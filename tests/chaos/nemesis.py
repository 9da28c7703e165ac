"""Plans the faults from the seed, and runs the threads that carry the plan out."""

import math
import random
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from tests.chaos.chaos_targets import ChaosTargets, Kind
from tests.chaos.faults import KINDS

WINDOW_S = 10.0
QUIET_SHARE = 0.25
PER_WINDOW = {"local": 3, "spark": 2}
THREADS = 8


@dataclass(frozen=True, slots=True)
class Episode:
    """A planned fault. `at_s`: seconds from the start; `seed`: seed of its own choices."""

    at_s: float
    kind: Kind
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """
    A fault that happened.

    Attributes:
        began, ended: Monotonic seconds.
        problem: Why the fault could not be caused or undone; empty if it could.
    """

    kind: str
    began: float
    ended: float
    problem: str = ""


def plan(seed: int, *, seconds: float, runtime: str, names: Sequence[str] = ()) -> list[Episode]:
    """
    Plan the faults of a run; a quarter of its windows have none. A seed always plans the same.

    Args:
        names: The kinds to use; if empty, all kinds that the runtime supports.
    """
    dice = random.Random(seed)
    kinds = [
        kind
        for kind in KINDS.values()
        if runtime in kind.runtimes and (not names or kind.name in names)
    ]
    weights = [kind.weight for kind in kinds]
    windows = math.ceil(seconds / WINDOW_S)
    quiet = dice.sample(range(windows), int(windows * QUIET_SHARE))
    episodes: list[Episode] = []
    for window in range(windows):
        start_s = window * WINDOW_S
        for _ in range(0 if window in quiet else PER_WINDOW[runtime]):
            (kind,) = dice.choices(kinds, weights)
            at_s = start_s + dice.random() * min(WINDOW_S, seconds - start_s)
            episodes.append(Episode(at_s, kind, dice.getrandbits(32)))
    return sorted(episodes, key=lambda episode: episode.at_s)


class Nemesis:
    """Carries a plan out. A fault waits for its place; it is skipped if the run ends first."""

    def __init__(self, targets: ChaosTargets, episodes: Sequence[Episode]) -> None:
        self.strikes: list[Strike] = []
        self.missed: list[str] = []
        self._targets = targets
        self._episodes = episodes
        self._places: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def rage(self, seconds: float) -> None:
        """Cause faults for this long; then heal everything."""
        began = monotonic()
        running: list[Future[None]] = []
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for episode in self._episodes:
                    self._targets.hold(began + episode.at_s - monotonic())
                    running.append(pool.submit(self._perform, episode))
                self._targets.hold(began + seconds - monotonic())
            finally:
                self._targets.healing.set()
        for one in running:
            one.result()
        self._targets.heal()

    def _perform(self, episode: Episode) -> None:
        kind = episode.kind
        with self._places[kind.place]:
            if self._targets.healing.is_set():
                self.missed.append(kind.name)
                return
            began, problem, struck = monotonic(), "", True
            try:
                struck = kind.act(self._targets, random.Random(episode.seed))
            except Exception as exc:  # noqa: BLE001 (shown in the report, which then fails)
                problem = f"{type(exc).__name__}: {exc}"
            if struck:
                self.strikes.append(
                    Strike(kind=kind.name, began=began, ended=monotonic(), problem=problem)
                )
            else:
                self.missed.append(kind.name)
