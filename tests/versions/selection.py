"""What a short certification runs: pairs of releases, and tests of our own lane."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from eos_mirror.testing.backend import WANTED, Backend
from eos_mirror.testing.releases import (
    RELEASES,
    SOURCE_VARIABLE,
    VARIABLE,
    Release,
    find_release,
)

CERTIFICATE: Final = ("tests/versions/test_brokers.py",)
"""That the brokers are of these releases, and which protocol the lane speaks with them."""

CONFORMANCE: Final = (
    "tests/engine/test_conformance_source.py",
    "tests/engine/test_conformance_target.py",
    "tests/engine/test_conformance_refusals.py",
)
"""The ports of the engine: every request of the lane, and what brokers refuse."""

LOST_ANSWERS: Final = "tests/wire/test_faults_on_brokers.py"
"""Recovery after the answer of any request was lost, also that of the end of a transaction."""

MIRROR: Final = (
    "tests/mirror/test_fields.py::test_every_field_arrives_unchanged",
    "tests/mirror/test_data_path.py",
    "tests/mirror/test_matrix_crash.py::test_c3_a_crash_inside_a_transaction_leaves_nothing_behind",
    "tests/mirror/test_matrix_crash.py"
    "::test_c6_a_task_that_slept_longer_than_its_session_writes_nothing[flushed]",
    "tests/mirror/test_matrix_crash.py"
    "::test_c7_a_task_whose_transactional_id_expired_in_its_sleep_writes_nothing[flushed]",
    "tests/mirror/test_recovery.py::test_killed_tasks_lose_and_double_nothing",
    "tests/mirror/test_at_least_once.py::test_killed_tasks_lose_nothing_and_double_one_batch_each",
    "tests/mirror/test_matrix_source_transactions.py"
    "::test_s5_aborted_records_never_arrive_and_a_hanging_transaction_only_stalls",
    "tests/mirror/test_matrix_source_transactions.py"
    "::test_s7_a_source_transaction_larger_than_ours_arrives_whole",
    "tests/mirror/test_checkpoints.py"
    "::test_groups_on_the_target_follow_but_never_back_and_never_under_a_member",
)
"""From end to end, as a user starts it."""

ALIKE: Final = ("client", "DELAY_RESPONSE", "HOLD_REQUEST", "test_many_faults")
"""Parts of names that are excluded: the other data path, and more faults of the same kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The releases of the source and of the target."""

    source: Release
    target: Release

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Return the pair of `SOURCE:TARGET`; without a colon, both are of the same release.

        Raises:
            ConfigError: There is no such release.
        """
        source, _, target = text.partition(":")
        return cls(source=find_release(source), target=find_release(target or source))

    def __str__(self) -> str:
        alike = self.source == self.target
        return self.source.name if alike else f"{self.source.name} → {self.target.name}"

    @property
    def tests(self) -> Sequence[str]:
        """Return the tests; the requests to a cluster are not tested again with another one."""
        if self.source != self.target:
            return (*CERTIFICATE, *MIRROR)
        return (*CERTIFICATE, *CONFORMANCE, LOST_ANSWERS, *MIRROR)

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of pytest: on brokers, with the protocol of the target only."""
        other = "TV1" if self.target.protocol == 2 else "TV2"
        excluded = [*ALIKE, "wire-tv1", other]
        return [*self.tests, "-m", "brokers", "-k", f"not ({' or '.join(excluded)})"]

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables that choose the brokers and the lane. Nothing may be skipped."""
        return {
            SOURCE_VARIABLE: self.source.name,
            VARIABLE: self.target.name,
            WANTED: Backend.JVM,
            "EOS_MIRROR_TEST_DATA_PATH": "auto",
            "CI": "true",
        }


OLDEST, NEWEST = RELEASES[0], RELEASES[-1]
PAIRS: Final = (
    *(Pair(source=one, target=one) for one in RELEASES),
    Pair(source=OLDEST, target=NEWEST),
    Pair(source=NEWEST, target=OLDEST),
)
