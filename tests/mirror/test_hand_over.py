"""Copies are handed over to a real MirrorMaker 2, and taken back: each record is there once."""

import json
import signal

import pytest

from eos_mirror.core.ledger import Kind
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.takeovers import adopt, copied, copy_by_mm2, hand_over, mm2_file, states_reported
from tests.mirror.toolbox import mirror, state_of

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SOME = 2_000


def by_us(site: Site, start: int) -> None:
    """Produce records, and mirror them."""
    site.produce(SOME, start=start)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    assert copied(site) == start + SOME


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at-least-once", "exactly-once"])
def test_copies_go_back_and_forth(site: Site, exactly_once: bool) -> None:
    """MirrorMaker 2, we, MirrorMaker 2, we: everyone continues where the other one ended."""
    copy_by_mm2(site, 0, SOME, exactly_once=exactly_once)
    code, answer = adopt(site, "--quiet", "1")
    assert code == 0, answer
    by_us(site, SOME)

    code, answer = hand_over(site, "--plan", "--json")
    assert code == 5, answer
    plan = json.loads(answer)["partitions"]
    assert [(one["stored"], one["next_offset"]) for one in plan] == [(500, 1000)] * 4
    code, answer = hand_over(site)
    assert code == 0, answer
    assert "4 positions handed over; MirrorMaker 2 may be started" in answer
    assert hand_over(site) == (0, f"{site.flow}: nothing to hand over\n")
    with mirror(site.config()) as refused:
        assert refused.wait() == 4
    (line,) = refused.errors
    assert "it was handed over to MirrorMaker 2" in line
    assert "--from mm2" in line

    copy_by_mm2(site, 2 * SOME, SOME, exactly_once=exactly_once)
    assert hand_over(site) == (0, f"{site.flow}: nothing to hand over\n")
    code, answer = adopt(site, "--quiet", "1")
    assert code == 0, answer
    by_us(site, 3 * SOME)

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * SOME
    entries = read_ledger(site.target.client_config(), site.flow)
    modes = [one.details["mode"] for one in entries if one.kind is Kind.MODE]
    assert modes == ["exactly-once", "handed-over", "exactly-once"]


def test_a_mirrormaker_2_that_is_started_by_mistake_copies_nothing(site: Site) -> None:
    """`adopt` has stopped its connectors, and its workers find them stopped."""
    copy_by_mm2(site, 0, SOME, exactly_once=False)
    code, answer = adopt(site, "--quiet", "1")
    assert code == 0, answer
    by_us(site, SOME)
    reported = len(states_reported(site))

    log = site.folder / "again.log"
    with running_mm2(mm2_file(site, exactly_once=False), log) as java:
        wait_until(
            lambda: "STOPPED" in states_reported(site)[reported:] or java.poll() is not None,
            within=COPIES_WITHIN,
            what=f"the connector to be stopped, see {log}",
        )
        assert java.poll() is None, log.read_text()[-2000:]
        site.produce(SOME, start=2 * SOME)
        java.send_signal(signal.SIGTERM)
        java.wait()
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 3 * SOME


def test_copies_of_a_killed_run_are_handed_over_exactly(site: Site) -> None:
    """The plan may name earlier positions; none of what was committed is copied again."""
    site.produce(10 * SOME)
    with mirror(site.config(transaction_boundary_records=1_000)) as running:
        wait_until(lambda: copied(site) > SOME, within=COPIES_WITHIN, what="some copies")
        pid = running.pid()
        running.kill()
    wait_until(lambda: state_of(pid) is None, within=COPIES_WITHIN, what="the end of the task")
    code, answer = hand_over(site, "--plan", "--json")
    assert code == 5, answer
    planned = sum(one["next_offset"] for one in json.loads(answer)["partitions"])
    code, answer = hand_over(site)
    assert code == 0, answer
    assert planned <= copied(site)

    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, exactly_once=False), log) as java:
        wait_until(
            lambda: copied(site) >= 10 * SOME or java.poll() is not None,
            within=COPIES_WITHIN,
            what=f"copies, see {log}",
        )

    compared = site.compare()
    assert compared.exact, (planned, compared)


def test_a_flow_that_never_ran_has_nothing_to_hand_over(site: Site) -> None:
    """Nothing is written."""
    code, answer = hand_over(site)
    assert code == 2, answer
    assert "there is nothing to hand over" in answer
