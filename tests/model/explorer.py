"""Breadth-first search through every interleaving, and the shortest trace to a violation."""

import gc
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.model import acquire, transact
from tests.model.brokers import Violation
from tests.model.canonical import canonical
from tests.model.environment import misfortunes
from tests.model.state import Budget, Model, State, Step, Stepper, Task, first_state
from tests.model.variants import Result, Stage, Variant

STEPPERS: Mapping[Stage, Stepper] = {
    "init": acquire.init,
    "tail": acquire.tail,
    "claim": acquire.claim,
    "read": acquire.read,
    "read-stale": acquire.read_stale,
    "fence": acquire.fence,
    "fetch": acquire.fetch,
    "fetch-unstable": acquire.fetch_unstable,
    "wait-idle": acquire.wait_idle,
    "registry-read": acquire.registry_read,
    "registry-fence": acquire.registry_fence,
    "registry-write": acquire.registry_write,
    "run": transact.run,
    "produce": transact.produce_one,
    "add-offsets": transact.add_offsets,
    "commit-offsets": transact.commit_offsets,
    "end": transact.end,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    What an exploration found.

    Attributes:
        states: Distinct states.
        edges: Steps tried.
        terminal: States in which nothing can happen any more.
        cut: Schedules beyond the bound on aborts by InitProducerId.
        violation: What a reader would see, if anything is wrong.
        trace: The shortest schedule to the violation, or else to a state that hangs.
    """

    result: Result
    states: int
    edges: int
    terminal: int
    cut: int
    violation: str | None
    trace: tuple[str, ...]


def explore(variant: Variant) -> Finding:
    """Visit every state of a variant, or stop at the first violation."""
    with _no_cycles():
        return _Search(variant).run()


@contextmanager
def _no_cycles() -> Iterator[None]:
    """
    Switch off the garbage collector. It would search tuples of numbers for cycles, which takes a
    fifth of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def successors(model: Model, state: State) -> Iterator[Step]:
    """Yield everything that can happen next."""
    for task_id, task in enumerate(state.tasks):
        for stepper in _steppers(model, task):
            for label, after in stepper(model, state, task_id):
                yield f"T{task_id} {task.stage}: {label}", after
    yield from misfortunes(model, state)


def _steppers(model: Model, task: Task) -> Iterator[Stepper]:
    if task.inbox and task.stage in ("idle", "run"):
        yield acquire.notice_assignment
        if model.variant.ids != "incarnation":
            return  # with ids per incarnation it may notice after any time
    if task.stage in STEPPERS:
        yield STEPPERS[task.stage]


class _Search:
    def __init__(self, variant: Variant) -> None:
        self.model = Model(variant)
        self.start = first_state(variant)
        self.parents: dict[State, State | None] = {self.start: None}
        self.edges = 0
        self.terminal = 0
        self.hanging: State | None = None

    def run(self) -> Finding:
        queue = deque([self.start])
        while queue:
            state = queue.popleft()
            try:
                children = self._expand(state)
            except Violation as violation:
                trace = (*self._trace(state), "EndTxn(commit) is decided")
                return self._finding("violation", trace, str(violation))
            queue.extend(children)
        if self.hanging:
            return self._finding("hang", self._trace(self.hanging), None)
        return self._finding("safe", (), None)

    def _expand(self, state: State) -> list[State]:
        """Return the children of a state that are new."""
        known, new, terminal = self.parents, [], True
        for _, after in successors(self.model, state):
            terminal = False
            self.edges += 1
            if after in known:
                continue  # already canonical
            child = canonical(self.model, after)
            count = len(known)
            known.setdefault(child, state)
            if len(known) > count:
                new.append(child)
        if terminal:
            self.terminal += 1
            if not self.hanging and not self._mirrored(state):
                self.hanging = state
        return new

    def _mirrored(self, state: State) -> bool:
        """Return whether a final state has mirrored everything (or was only cut off by a bound)."""
        if state.budget[Budget.ABORTS] == 0:
            return True
        if any(pid is not None for _, tail in state.data for _, pid in tail):
            return False  # readers wait for the decision indefinitely
        decided = (n + sum(pid is None for _, pid in tail) for n, tail in state.data)
        return all(count >= self.model.variant.records for count in decided)

    def _finding(self, result: Result, trace: tuple[str, ...], violation: str | None) -> Finding:
        return Finding(
            result=result,
            states=len(self.parents),
            edges=self.edges,
            terminal=self.terminal,
            cut=self.model.cut,
            violation=violation,
            trace=trace,
        )

    def _trace(self, state: State) -> tuple[str, ...]:
        """Return the labels of the steps from the start to a state, by repeating the steps."""
        model, labels = Model(self.model.variant), []
        while parent := self.parents[state]:
            for label, after in successors(model, parent):
                if canonical(model, after) == state:
                    labels.append(label)
                    break
            state = parent
        return tuple(reversed(labels))
