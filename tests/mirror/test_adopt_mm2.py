"""Copies of a real MirrorMaker 2 are taken over: nothing is missing and nothing comes twice."""

import json
import signal

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.surgery import delete_records, produce_values
from tests.mirror.takeovers import adopt, copied, mm2_file, states_reported
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

BEFORE, PIECE, AFTER = 120_000, 40_000, 2_000
SOME = 2_000


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at-least-once", "exactly-once"])
def test_a_killed_mirrormaker_2_is_continued_exactly(site: Site, exactly_once: bool) -> None:
    """It is killed in flight, and had written more than it stored."""
    for start in range(0, BEFORE, PIECE):  # a producer has room for some records only
        site.produce(PIECE, start=start)
    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, exactly_once=exactly_once), log) as java:
        wait_until(lambda: copied(site) > SOME, within=COPIES_WITHIN, what=f"copies, see {log}")
        java.send_signal(signal.SIGKILL)
        java.wait()
    code, answer = adopt(site, "--plan", "--json")
    assert code == 5, answer
    plan = json.loads(answer)["partitions"]
    assert all(one["next_offset"] >= (one["stored"] or 0) for one in plan)
    assert sum(one["to_come"] for one in plan) > 0, "it was killed too late"
    beyond = [one for one in plan if one["next_offset"] > (one["stored"] or 0)]
    assert exactly_once or beyond, "everything that it wrote was stored"

    code, answer = adopt(site, "--quiet", "2")
    assert code == 0, answer
    with mirror(site.config()) as running:
        site.produce(AFTER, start=BEFORE)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == BEFORE + AFTER
    assert adopt(site) == (0, f"{site.flow}: nothing to take over\n")


def test_a_takeover_that_is_not_certain_is_refused(site: Site) -> None:
    """MirrorMaker 2 runs; another client wrote into a copy. Nothing is written."""
    site.produce(SOME)
    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, exactly_once=False), log):
        wait_until(lambda: copied(site) == SOME, within=COPIES_WITHIN, what=f"copies, see {log}")
        code, answer = adopt(site, "--quiet", "1")
        assert code == 4, answer
        assert f"MirrorMaker 2 runs: group {site.flow.source}-mm2" in answer
    code, answer = adopt(site, "--plan")
    assert (code, answer.count("continues at 500 ")) == (5, 4), answer
    produce_values(site.target, site.remote, [b"of another client"])

    for arguments in (["--plan"], ["--quiet", "1"]):
        code, answer = adopt(site, *arguments)
        assert code == 4, answer
        assert f"{site.topic}-0: " in answer
        assert "stored 500" in answer
        assert "another client wrote it" in answer
    with mirror(site.config()) as running:
        refused = running.wait_for("topic.refused", topic=site.topic)
        assert "--from mm2" in refused["reason"]
        assert running.stop() == 1, running.errors
    delete_records(site.target, site.remote, before=501)  # with the record of the other client
    code, answer = adopt(site, "--plan")
    assert (code, answer.count("continues at 500 ")) == (4, 3), answer


def test_a_suspended_mirrormaker_2_is_stopped(site: Site) -> None:
    """It writes exactly once, is suspended in flight, and continues after the flow has run."""
    for start in range(0, BEFORE, PIECE):
        site.produce(PIECE, start=start)
    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, exactly_once=True), log) as java:
        wait_until(lambda: copied(site) > SOME, within=COPIES_WITHIN, what=f"copies, see {log}")
        java.send_signal(signal.SIGSTOP)
        try:
            code, answer = adopt(site)
            assert code == 0, answer
            assert "(MirrorMaker 2 stored no position" not in answer
            with mirror(site.config(), "--once") as running:
                assert running.wait() == 0, running.errors
            reported = len(states_reported(site))
        finally:
            java.send_signal(signal.SIGCONT)
        wait_until(
            lambda: "STOPPED" in states_reported(site)[reported:],
            within=COPIES_WITHIN,
            what=f"the connector to be stopped, see {log}",
        )
    with mirror(site.config(), "--once") as running:
        site.produce(AFTER, start=BEFORE)
        assert running.wait() == 0, running.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == BEFORE + AFTER
