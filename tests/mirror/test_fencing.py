"""A writer that is paused between records and offsets: the reason why claims exist."""

import os
import signal
from datetime import timedelta

import pytest

from eos_mirror.demo.crash import transaction_states
from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import Comparison
from eos_mirror.testing.entry import environ_for
from tests.mirror.conftest import Site
from tests.mirror.crashes import hold_a_writer
from tests.mirror.toolbox import Mirror, mirror, state_of

pytestmark = pytest.mark.brokers


def test_a_transaction_with_offsets_alone_is_not_the_worst_moment(site: Site) -> None:
    """The task pauses in a transaction with records, which the broker lists as ongoing."""
    with mirror(site.config(), env=environ_for(pause_at="flushed:1")) as running:
        # the first commit has only the start positions
        site.wait_caught_up()
        site.produce(1)
        task = hold_a_writer(running)
        listed = transaction_states(site.target.tool("TransactionsCommand", "list").stdout)
        incarnation = running.found("incarnation.started")[-1]["transactional_id"]
        assert listed[incarnation] == "Ongoing"
        os.kill(task, signal.SIGCONT)
        assert running.stop() == 0, running.errors


def pause_a_writer_and_let_another_finish(site: Site, fencing: str) -> tuple[Comparison, Mirror]:
    """
    Pause a process after it has written records and before it sends their offsets.

    Its driver is killed, a new run mirrors everything, and then the process wakes up and
    continues where it was.
    """
    site.produce(20_000)
    config = site.config(transaction_boundary_records=2_000)
    with mirror(config, env=environ_for(fencing=fencing, pause_at="flushed:3")) as first:
        zombie = hold_a_writer(first)
        first.kill()
        with mirror(config, "--once", env=environ_for(fencing=fencing)) as second:
            assert second.wait() == 0, second.errors
            os.kill(zombie, signal.SIGCONT)
            wait_until(
                lambda: state_of(zombie) in {None, "Z"},
                within=timedelta(seconds=30),
                what="the exit of the process that was woken",
            )
    return site.compare(), second


def test_a_paused_writer_is_fenced_and_nothing_it_wrote_is_visible(site: Site) -> None:
    """With claims, the successor fences the sleeper before it reads the shadow offsets."""
    compared, second = pause_a_writer_and_let_another_finish(site, "claims")

    assert compared.exact, str(compared)
    assert compared.matched == 20_000
    assert second.found("incarnation.fenced"), "nothing was fenced: the test proves nothing"
    (warning,) = second.found("flow.warning")
    assert "unset EOS_MIRROR_TASK_ENTRY" in warning["reason"]


@pytest.mark.parametrize("broken", ["naive", "stable-only"])
def test_the_checker_sees_what_a_broken_engine_does(site: Site, broken: str) -> None:
    """KIP-656 as drafted doubles the paused process's records, even with stable reads."""
    compared, _ = pause_a_writer_and_let_another_finish(site, broken)

    assert compared.duplicates > 0
    assert not compared.exact
