"""The result of the demo as a table, and the verdict."""

from dataclasses import dataclass

from eos_mirror.demo.proof import Proof
from eos_mirror.demo.source import Written

READ_ON = """\
Next: README.md, what is guaranteed and what is not; docs/guarantees.md, why it holds;
docs/quickstart.md, your own two clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    The result of the demo.

    Attributes:
        transactions: Transactions committed on the target, as the tasks reported them.
        killed: Tasks killed while their transaction was open on the target.
        fenced: Earlier writers that a successor has fenced.
        slow_commits: Slow commits; after each one a task fences itself and continues as a new
            writer.
        best_rate: Records per second, in the best two seconds.
        mirrored_s: Seconds from the start of the first task until the target had caught up.
        exit_code: Exit code of `eos-mirror run` after SIGTERM.
    """

    written: Written
    proof: Proof
    transactions: int
    killed: int
    fenced: int
    slow_commits: int
    best_rate: float
    mirrored_s: float
    exit_code: int

    @property
    def is_good(self) -> bool:
        """Return whether nothing differs, the kill hit a transaction and the run exited with 0."""
        return self.proof.holds and self.killed > 0 and self.exit_code == 0

    def table(self) -> str:
        """Return the results as a table, one line each."""
        records = self.written.committed.total()
        found = self.proof.comparison
        slow = self.slow_commits
        replaced = f"; {slow} commits were slow, and their writers replaced" if slow else ""
        rows = {
            "records mirrored": f"{found.matched:,} of {records:,}, in order, all fields",
            "records of aborted transactions": f"{self.written.aborted:,}, not mirrored",
            "transactions on the source": f"{self.written.commits:,} committed, "
            f"{self.written.aborts:,} aborted",
            "transactions on the target": f"about {self.transactions:,}",
            "tasks killed in an open transaction": f"{self.killed}",
            "writers fenced": f"{self.fenced}{replaced}",
            "duplicates": f"{found.duplicates:,}",
            "missing": f"{found.missing:,}",
            "reordered": f"{found.reordered:,}",
            "altered": f"{found.altered:,}",
            "rate": f"{self.best_rate:,.0f} records/s in the best two seconds, "
            f"{records / self.mirrored_s:,.0f} over all, with the kill",
        }
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())

    def verdict(self) -> str:
        """Return the verdict in one line, with a line for each doubt."""
        if self.is_good:
            return "Exactly once: Kafka's own console consumer reads the same on both sides."
        faults = self.proof.doubts()
        if not self.killed:
            faults.append("the kill hit no open transaction: the demo proves nothing")
        if self.exit_code:
            faults.append(f"eos-mirror run exited with exit code {self.exit_code}")
        return "\n".join(["This is NOT exactly once:", *faults])
