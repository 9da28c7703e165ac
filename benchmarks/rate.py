"""
Rate and cost of one local task in the steady state, and the proof that its copy is exact.

Progress is read from the shadow offsets, which cover committed records only. Source trees that are
compared alternate within each round, so that other load on the machine affects all of them.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.mirror import Mirror, running, write_config
from benchmarks.processes import cpu_s, machine_cpu_s, peak_rss_mb
from benchmarks.records import PARTITIONS, digest, fill
from benchmarks.steady import Sample, spread, steady_state
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.run_folder import NODE_PROCESS

SAMPLE_EVERY_S = 0.2
COPIED_WITHIN = timedelta(minutes=10)
LOCAL_SETTINGS = {"runtime": "local", "tasks.max": 1}
Results = dict[str, list[dict[str, Any]]]


class NotExactError(Exception):
    """The copy differs from the source: there is no rate to report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    What to measure.

    Attributes:
        sizes: Records by value size in bytes.
        rounds: Number of rounds for every size and tree.
        trees: Source trees to run; results are compared with the first one.
        data_path: `data.path`; None for trees that do not have it.
    """

    sizes: Mapping[int, int]
    rounds: int
    trees: Sequence[Path]
    data_path: str | None = None

    def name(self, tree: Path, value_bytes: int) -> str:
        """Return the name of a row."""
        return f"{value_bytes} B" + (f" {tree}" if len(self.trees) > 1 else "")

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of the flow."""
        path = {} if self.data_path is None else {"data.path": self.data_path}
        return {**LOCAL_SETTINGS, **path}

    @property
    def width(self) -> int:
        """The width of the first column."""
        return 2 + max(len(self.name(tree, size)) for tree in self.trees for size in self.sizes)


def measure_rates(
    source: KafkaCluster, target: KafkaCluster, *, folder: Path, plan: Plan
) -> Results:
    """
    Measure every round of every row.

    Raises:
        NotExactError: A copy differs from its source.
    """
    results: Results = {}
    for value_bytes, wanted in plan.sizes.items():
        topic, count = f"bytes-{value_bytes}", wanted // PARTITIONS * PARTITIONS
        source.create_topic(topic, PARTITIONS)
        fill(source, topic, count=count, value_bytes=value_bytes)
        original = digest(source, topic)
        for number in range(plan.rounds):
            for i, tree in enumerate(plan.trees):
                flow = Flow(f"s{value_bytes}-{number}-{i}", "t")
                copy = Copy(flow, source=source, target=target, topic=topic, total=count)
                result = copy.measure(folder, tree, plan.settings)
                if digest(target, copy.remote) != original:
                    raise NotExactError(f"{flow} {copy.remote}: the copy differs from {topic}")
                target.admin().delete_topics([copy.remote])[copy.remote].result(30)
                results.setdefault(plan.name(tree, value_bytes), []).append(result)
        source.admin().delete_topics([topic])[topic].result(30)
    return results


@dataclass(frozen=True, kw_only=True)
class _Processes:
    """The processes whose CPU time is read."""

    pids: Mapping[str, int]

    def cpu_s(self) -> dict[str, float]:
        """Return CPU seconds by role; `mirror` is task and driver, `others` all other processes."""
        spent = {role: cpu_s(pid) for role, pid in self.pids.items()}
        busy, steal = machine_cpu_s()
        others = busy - sum(spent.values()) - time.process_time()
        mirror = spent["task"] + spent["driver"]
        return {**spent, "mirror": mirror, "others": others, "steal": steal}


class Copy:
    """One topic mirrored once by one source tree."""

    def __init__(
        self,
        flow: Flow,
        *,
        source: KafkaCluster,
        target: KafkaCluster,
        topic: str,
        total: int,
    ) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._topic = topic
        self._total = total
        self.remote = f"{flow.source}.{topic}"

    def measure(self, folder: Path, tree: Path, settings: Mapping[str, object]) -> dict[str, Any]:
        """Mirror the whole topic; return the figures of the steady state."""
        config = write_config(
            folder,
            self._flow,
            source=self._source,
            target=self._target,
            topic=self._topic,
            settings=settings,
        )
        with running(config, "--once", code=tree) as mirror:
            mirror.wait_for("ready")
            mirror.wait_for("task.started")
            samples = self._watch(mirror)
            if not mirror.ended_well():
                raise RuntimeError(f"{self._flow} did not end well: {mirror.events[-5:]}")
            incarnations = len(mirror.found("incarnation.started"))
        steady = steady_state(samples, total=self._total)
        seconds = steady.seconds
        return {
            **asdict(steady),
            "rate": steady.rate,
            "task_rss_mb": max(sample.peak_rss_mb for sample in samples),
            "incarnations": incarnations,
            "longest_gap_s": max(b.at - a.at for a, b in pairwise(samples)),
            "other_cores": steady.cpu_s["others"] * steady.records / 1e6 / seconds,
            "steal_cores": steady.cpu_s["steal"] * steady.records / 1e6 / seconds,
        }

    def _watch(self, mirror: Mirror) -> list[Sample]:
        """Take samples until everything is committed."""
        processes = _Processes(
            pids={
                "task": mirror.task_pids[0],
                "driver": mirror.process.pid,
                "source": broker_pid(self._source),
                "target": broker_pid(self._target),
            }
        )
        shadow = CommittedOffsets(
            self._target.client_config(), self._flow.shadow_group, side=Side.TARGET
        )
        samples: list[Sample] = []
        deadline = time.monotonic() + COPIED_WITHIN.total_seconds()
        while not samples or samples[-1].records < self._total:
            if time.monotonic() > deadline or mirror.process.poll() is not None:
                raise RuntimeError(f"{self._flow} did not copy everything: {mirror.events[-5:]}")
            samples.append(
                Sample(
                    ends=[self._committed(shadow)],  # one task commits all of it together
                    at=time.monotonic(),
                    cpu_s=processes.cpu_s(),
                    peak_rss_mb=peak_rss_mb(processes.pids["task"]),
                )
            )
            time.sleep(SAMPLE_EVERY_S)
        return samples

    def _committed(self, shadow: CommittedOffsets) -> int:
        """Sum the next offsets; the source has no transactions, so they count records."""
        remotes = [TopicPartition(self.remote, p) for p in range(PARTITIONS)]
        return sum(one.position.next_offset for one in shadow.read(remotes).values())


def broker_pid(cluster: KafkaCluster) -> int:
    """Return the process id of the only node of the cluster."""
    return int((cluster.log(1).parent / NODE_PROCESS).read_text().split()[0])


def rate_rows(results: Results, plan: Plan) -> list[str]:
    """Return the lines of the table."""
    lines = [
        f"one task, {_settings(plan)}, {PARTITIONS} partitions, no compression, transactions of "
        f"100 ms; median (range) of {plan.rounds} rounds; CPU s per million records; "
        "every copy verified",
        f"{'value':<{plan.width}}{'k rec/s':<17}{'task':<18}{'task+driver':<18}"
        f"{'source broker':<18}{'target broker':<18}{'steady s':<14}{'task RSS MB':<15}"
        "others, steal (cores)",
    ]
    for name, rounds in results.items():
        lines.append(
            f"{name:<{plan.width}}{spread([r['rate'] / 1e3 for r in rounds]):<17}"
            + "".join(
                f"{spread([r['cpu_s'][role] for r in rounds], '.2f'):<18}"
                for role in ("task", "mirror", "source", "target")
            )
            + f"{spread([r['seconds'] for r in rounds], '.1f'):<14}"
            + f"{spread([r['task_rss_mb'] for r in rounds]):<15}"
            + f"{median(r['other_cores'] for r in rounds):.2f}, "
            + f"{median(r['steal_cores'] for r in rounds):.2f}"
        )
    return lines + _comparisons(results, plan)


def _settings(plan: Plan) -> str:
    path = plan.data_path
    return "runtime=local" + ("" if path is None else f", data.path={path}")


def _comparisons(results: Results, plan: Plan) -> list[str]:
    """Divide the figures of this tree by those of each other tree, round by round."""
    lines = []
    for other in plan.trees[1:]:
        for value_bytes in plan.sizes:
            pairs = list(
                zip(
                    results[plan.name(plan.trees[0], value_bytes)],
                    results[plan.name(other, value_bytes)],
                    strict=True,
                )
            )
            rates = [ours["rate"] / theirs["rate"] for ours, theirs in pairs]
            costs = [ours["cpu_s"]["task"] / theirs["cpu_s"]["task"] for ours, theirs in pairs]
            lines.append(
                f"{value_bytes} B, this tree / {other}: rate {spread(rates, '.2f')}, "
                f"CPU of the task {spread(costs, '.2f')}"
            )
    return lines
