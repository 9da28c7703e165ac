"""One run from start to report: clusters, mirror, load, nemesis, drain, stop, audit."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic

from eos_mirror import __version__
from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import Record, wait_until
from eos_mirror.testing.entry import environ_for
from tests.chaos import measures
from tests.chaos.allowed import check_errors, check_events, check_exits
from tests.chaos.audit import (
    Audit,
    audit_leftovers,
    audit_map,
    audit_positions,
    audit_records,
    audit_witness,
    read_all,
)
from tests.chaos.chaos_targets import ChaosTargets
from tests.chaos.checks import check_bound
from tests.chaos.drain import Drained, behind, wait_drained, without_markers, write_evidence
from tests.chaos.faults import applicable
from tests.chaos.load import Load, number_of
from tests.chaos.message_handler import Handler, copies_of
from tests.chaos.nemesis import Nemesis, plan
from tests.chaos.quarantine import NOTHING, Copies, Moved, one_copy, read_quarantine, without
from tests.chaos.report import Report
from tests.chaos.restarting_driver import RestartingDriver
from tests.chaos.site import (
    BATCH_RECORDS,
    BUSY,
    POLL_RECORDS,
    SAFE_REPLICATION,
    SOURCES,
    Site,
    open_site,
    remote,
)
from tests.chaos.witness import Witness

READY_WITHIN = timedelta(seconds=90)
GONE_WITHIN = timedelta(seconds=30)
A_BATCH = BATCH_RECORDS + POLL_RECORDS


HANDLER = f"{Handler.__module__}.{Handler.__qualname__}"
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    What to run.

    Attributes:
        mode: `exactly-once` or `at-least-once`.
        data_path: `data.path`.
        transactions: `transaction.version` of the target.
        quarantine: Refused records move to the quarantine, instead of stopping their partition.
        handler: A message handler makes the copies; with a quarantine only, as it refuses some.
        broken: `naive` or `stable-only`: the broken fencing that the run must catch.
        kinds: Kinds of faults; all if empty.
        keep: Folder for events, faults, logs and the output of Kafka's tools.
    """

    seed: int
    minutes: float
    runtime: str = "local"
    mode: str = EXACTLY_ONCE
    data_path: str = "auto"
    transactions: int = 2
    quarantine: bool = False
    handler: bool = False
    broken: str | None = None
    replication: int = SAFE_REPLICATION
    kinds: Sequence[str] = ()
    keep: Path | None = None


class Session:
    """One run; create a new session for each."""

    def __init__(self, options: Options, site: Site) -> None:
        self._options = options
        self._site = site
        environ = environ_for(pause_at=site.pause_at, fencing=options.broken or "")
        self._restarting = RestartingDriver(site.config, environ)
        self._load = Load(site.source, options.seed)
        self._witness = Witness(site.target)
        self._targets = ChaosTargets(
            site=site, restarting=self._restarting, ledger=self._load.ledger
        )
        seconds = options.minutes * 60
        kinds = options.kinds or applicable(exactly_once=site.exactly_once)
        episodes = plan(options.seed, seconds=seconds, runtime=options.runtime, names=kinds)
        self._nemesis = Nemesis(self._targets, episodes)
        self._seconds = seconds
        self._began = monotonic()
        self._audit = Audit()
        self._drained = Drained.NO
        self._drain_s = 0.0
        self._moved: Moved = NOTHING
        self._copies: Copies = copies_of if options.handler else one_copy

    def run(self) -> Report:
        """Run everything and return the report; no process stays frozen or running afterwards."""
        try:
            self._mirror_under_fire()
            self._stop_and_audit()
            self._judge_events()
            return self._report()
        finally:
            self._targets.heal()
            self._restarting.close()
            self._witness.close()
            self._keep()

    def _mirror_under_fire(self) -> None:
        self._restarting.start()
        self._witness.start()
        wait_until(
            lambda: bool(self._restarting.found("ready")),
            within=READY_WITHIN,
            what=f"ready: {self._restarting.errors[-5:]}",
        )
        self._began = monotonic()
        with self._load.running():
            self._nemesis.rage(self._seconds)
        healed = monotonic()
        self._drained = wait_drained(self._site, self._restarting)
        self._drain_s = monotonic() - healed
        if self._drained is Drained.NO:
            self._audit.add("drained", "run", behind(self._site))
            if self._options.keep is not None:
                write_evidence(self._site, self._options.keep)
            self._restarting.dump()

    def _stop_and_audit(self) -> None:
        audit, journal = self._audit, self._load.journal
        code = self._restarting.stop()
        whole = self._drained is not Drained.MARKERS_LOST
        deleted = any(strike.kind == "copy.delete" for strike in self._nemesis.strikes)
        lost = without_markers(self._restarting)
        expected = 1 if deleted or lost else 0  # not everything is mirrored
        audit.add("graceful stop", "driver", [f"exit code {code}"] * (whole and code != expected))
        source = read_all(self._site.source.client_config(), copies=False)
        target = read_all(self._site.target.client_config(), copies=True)
        if self._options.quarantine:
            self._moved = read_quarantine(self._site.target.client_config())
        audit_records(
            audit,
            source,
            target,
            moved=self._moved,
            copies=self._copies,
            journal=journal,
            beginnings=lost if whole else set(SOURCES),
            exactly_once=self._site.exactly_once,
        )
        if not self._site.exactly_once:
            repeats = self._senders + len(self._restarting.found("batch.refused"))
            audit.add("bound", "run", check_bound(self._duplicates, repeats, A_BATCH))
        try:
            self._witness.finish(target)
        except TimeoutError as exc:
            audit.add("reader", "end", [str(exc)])
        audit.add("reader", "position", self._witness.complaints)
        audit_witness(audit, self._records_seen(), source, target, journal=journal)
        if self._drained is Drained.YES:
            whole_ones = [one for one in SOURCES if one not in lost]
            audit_positions(audit, self._site, whole_ones)
            if self._site.exactly_once:
                copied = {
                    one: without(source[one], self._moved[one], one.topic, self._copies)
                    for one in SOURCES
                }
                audit_map(audit, self._site, whole_ones, copied, target, journal)
            audit_leftovers(audit, self._site, whole_ones, self._survivors())

    def _records_seen(self) -> dict[TopicPartition, list[Record]]:
        return {one: [s.record for s in seen] for one, seen in self._witness.seen.items()}

    def _survivors(self) -> list[int]:
        try:
            wait_until(
                lambda: not self._restarting.survivors(),
                within=GONE_WITHIN,
                what="all tasks to exit",
            )
        except TimeoutError:
            return self._restarting.survivors()
        return []

    @property
    def _duplicates(self) -> int:
        return sum(one.duplicates for one in self._audit.compared.values())

    @property
    def _processes(self) -> int:
        return len(self._restarting.found("task.started"))

    @property
    def _lost(self) -> int:
        return len(self._restarting.found("transaction.lost"))

    @property
    def _senders(self) -> int:
        """Producers that may have left a batch behind them."""
        return self._processes + self._lost

    def _judge_events(self) -> None:
        restarting = self._restarting
        single = self._site.replication < SAFE_REPLICATION
        self._audit.add("events", "log", check_events(restarting.events, single_node=single))
        jvm_kills = [s.began for s in self._nemesis.strikes if s.kind == "jvm.kill"]
        exits = check_exits(restarting.exits, restarting.errors, jvm_kills=jvm_kills)
        self._audit.add("events", "exit", exits)
        self._audit.add("events", "stderr", check_errors(restarting.errors))
        problems = [f"{s.kind}: {s.problem}" for s in self._nemesis.strikes if s.problem]
        self._audit.add("nemesis", "fault", problems)

    # ------------------------------------------------------------------ report

    def _report(self) -> Report:
        options, strikes = self._options, self._nemesis.strikes
        arrivals = [
            [seen.at for seen in self._witness.seen[remote(one)] if seen.at >= self._began]
            for one in BUSY
        ]
        recovered = measures.recoveries(strikes, arrivals)
        return Report(
            title={
                "seed": options.seed,
                "runtime": options.runtime,
                "mode": options.mode,
                "data path": options.data_path,
                "transaction.version": options.transactions,
                "minutes": options.minutes,
                "replication": options.replication,
                "version": __version__,
                **({"broken": options.broken} if options.broken else {}),
                **({"quarantine": "yes"} if options.quarantine else {}),
                **({"message handler": "yes"} if options.handler else {}),
            },
            faults=Counter(strike.kind for strike in strikes),
            figures=self._figures(arrivals, recovered),
            recovery_s=recovered,
            complaints=self._audit.complaints,
            caught_after_s=self._caught_after_s(),
        )

    def _figures(
        self, arrivals: Sequence[measures.Times], recovered: Mapping[str, Sequence[float]]
    ) -> dict[str, object]:
        compared, restarting = self._audit.compared.values(), self._restarting
        spent = [s for kind in recovered.values() for s in kind]
        done = measures.counters(restarting.events)
        moved = sum(map(len, self._moved.values()))
        return {
            "faults": len(self._nemesis.strikes),
            "faults that met nothing": len(self._nemesis.missed),
            "records on the target": sum(map(len, self._witness.seen.values())),
            "records, committed by tasks": done["records"],
            "transactions": done["transactions"],
            "incarnations": len(restarting.found("incarnation.started")),
            "fences": len(restarting.found("incarnation.fenced")),
            "passed in whole batches": done["passed"],
            "transactions lost": self._lost,
            "suspicious commits": len(restarting.found("commit.suspicious")),
            "re-acquires": len(restarting.found("partitions.acquired")),
            "task processes": self._processes,
            "driver processes": len(restarting.exits),
            "duplicates": self._duplicates,
            **({} if self._site.exactly_once else {"explained": self._senders * A_BATCH}),
            "missing": sum(one.missing for one in compared),
            "reordered": sum(one.reordered for one in compared),
            **({"quarantined": moved} if self._options.quarantine else {}),
            "altered": sum(one.altered + one.foreign for one in compared),
            "aborted in vain on the source": self._audit.aborted_in_vain,
            "offsets translated": self._audit.translated,
            "translation errors": self._audit.count("translation"),
            "drained": self._drained.value,
            "drained after, s": self._drain_s,
            "recovery p50, s": measures.percentile(spent, 0.5),
            "recovery p99, s": measures.percentile(spent, 0.99),
            "recovery max, s": measures.percentile(spent, 1),
            "reader stall p99, s": measures.stall_s(arrivals, 0.99),
        }

    def _caught_after_s(self) -> float | None:
        seen = [[(s.at, number_of(s.record)) for s in one] for one in self._witness.seen.values()]
        at = measures.first_repeated(seen)
        return None if at is None else at - self._began

    def _keep(self) -> None:
        folder = self._options.keep
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._site.config, folder / "mm2.properties")
        events = [
            json.dumps({"at": round(h.at - self._began, 3), "run": h.run, **h.fields})
            for h in list(self._restarting.events)
        ]
        (folder / "events.jsonl").write_text("\n".join(events))
        strikes = [
            f"{s.began - self._began:8.2f} {s.ended - self._began:8.2f} {s.kind} {s.problem}"
            for s in self._nemesis.strikes
        ]
        (folder / "faults.txt").write_text("\n".join(strikes))
        lines = [f"{run} {line}" for run, line in list(self._restarting.errors)]
        (folder / "stderr.txt").write_text("\n".join(lines))
        for cluster in (self._site.source, self._site.target):
            for node in cluster.spec.node_ids:
                shutil.copy(cluster.log(node), folder / f"{cluster.spec.name}-{node}.log")


def run(options: Options, folder: Path) -> Report:
    """
    Start everything, cause the faults, and report the result.

    Args:
        folder: An empty folder for the configuration.
    """
    with open_site(
        folder,
        replication=options.replication,
        runtime=options.runtime,
        transactions=options.transactions,
        exactly_once=options.mode == EXACTLY_ONCE,
        more={
            "data_path": options.data_path,
            **({"errors_tolerance": "all"} if options.quarantine else {}),
            **({"message_handler": HANDLER} if options.handler else {}),
        },
    ) as site:
        return Session(options, site).run()
