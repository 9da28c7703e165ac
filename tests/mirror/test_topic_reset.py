"""`eos-mirror offsets reset` lets a topic be mirrored again from its start."""

import signal

import pytest

from eos_mirror.core.ledger import Kind
from eos_mirror.kafka.ledger import read_ledger
from tests.mirror.conftest import Site
from tests.mirror.killed_verb import verb
from tests.mirror.proofs import verify
from tests.mirror.surgery import delete_topic
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

BEFORE, AFTER = 400, 40
STEPS = {
    "nothing is written": ("eos_mirror.operate.topic_reset", "switch_of"),
    "the partitions are claimed": ("eos_mirror.operate.topic_reset", "note"),
    "the ledger has its entry": ("eos_mirror.operate.topic_reset", "TopicReset._delete"),
    "the copy is deleted": ("eos_mirror.operate.carry_positions", "Switch._old_map"),
    "the map is deleted": ("eos_mirror.replication.ownership", "Ownership.release"),
}
"""What is done when the command is killed, and where."""


def created_again(site: Site) -> None:
    """Mirror a topic; then its source is deleted and created again, with other records."""
    site.produce(BEFORE)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    delete_topic(site.source, site.topic)
    site.source.create_topic(site.topic, site.partitions)
    site.produce(AFTER)


def check_copy(site: Site, count: int) -> None:
    """Assert that the copy has these records of the source, and nothing else."""
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == count
    code, _, text = verify(site)
    assert code == 0, text


def test_a_topic_that_was_created_again_is_mirrored_again(site: Site) -> None:
    """A run is refused; after it, the verb works, and the ledger says who reset the topic."""
    created_again(site)
    arguments = ("offsets", "reset", str(site.config()), str(site.flow), site.topic)
    with mirror(site.config()) as running:
        running.wait_for("partition.stopped", cause="SourceDataLost", count=site.partitions)
        refused = verb(*arguments, "--yes")
        assert (refused.returncode, "a run mirrors it" in refused.stderr) == (4, True), refused
        assert running.stop() == 1, running.errors
    said = verb(*arguments, "--plan")
    assert (said.returncode, f"{site.partitions} partitions, " in said.stdout) == (5, True), said
    done = verb(*arguments, "--yes", "--reason", "new")
    assert done.returncode == 0, done.stderr

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    check_copy(site, AFTER)
    entries = read_ledger(site.target.client_config(), site.flow)
    (entry,) = [one for one in entries if one.kind is Kind.RESET]
    assert (entry.details["topic"], entry.details["reason"]) == (site.topic, "new")


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_reset_is_run_again(site: Site, step: str) -> None:
    """It ends as if it had not been killed."""
    created_again(site)
    arguments = ("offsets", "reset", str(site.config()), str(site.flow), site.topic, "--yes")
    killed = verb(*arguments, killed=STEPS[step])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = verb(*arguments)
    assert again.returncode == 0, again.stderr

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    check_copy(site, AFTER)


@pytest.mark.parametrize(
    ("topic", "yes", "said"),
    [("no-such-topic", True, "does not mirror no-such-topic"), ("", False, "add --yes")],
)
def test_what_cannot_be_reset_is_refused(site: Site, topic: str, yes: bool, said: str) -> None:
    """One line says why, and nothing is deleted."""
    site.produce(BEFORE)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    more = ["--yes"] if yes else []
    where = (str(site.config()), str(site.flow), topic or site.topic)
    refused = verb("offsets", "reset", *where, *more)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert said in refused.stderr
    check_copy(site, BEFORE)
