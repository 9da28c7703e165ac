"""A source connector and a real MirrorMaker 2 take turns: each continues the copies."""

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.command_line import UNSAFE
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.modes import SINK, SOME, SOURCE, SOURCE_EXACTLY_ONCE, copy
from tests.mirror.takeovers import adopt_as, copied, copy_by_mm2, mm2_file
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]


def by_mm2(site: Site, start: int, *, exactly_once: bool = False) -> None:
    """Produce records, and let MirrorMaker 2 copy them."""
    copy_by_mm2(site, start, SOME, exactly_once=exactly_once)


@pytest.mark.parametrize("begins", ["mm2", "we"])
def test_exactly_once_takes_turns_too(site: Site, begins: str) -> None:
    """MirrorMaker 2 exactly once and we continue where the other one ended, in either order."""
    turns = ["mm2", "we"] if begins == "mm2" else ["we", "mm2"]
    for turn, who in enumerate(2 * turns):
        if who == "mm2":
            by_mm2(site, turn * SOME, exactly_once=True)
        else:
            site.produce(SOME, start=turn * SOME)
            with mirror(site.config(**SOURCE_EXACTLY_ONCE), "--once") as running:
                assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * SOME


def test_a_mirrormaker_2_that_was_adopted_can_take_turns_again(site: Site) -> None:
    """Its connectors were stopped; a source connector starts them."""
    by_mm2(site, 0, exactly_once=True)
    assert adopt_as(site, SINK, "--from", "mm2")[0] == 0
    for turn, mode in enumerate((SINK, SOURCE_EXACTLY_ONCE), 1):
        site.produce(SOME, start=turn * SOME)
        with mirror(site.config(**mode), "--once") as running:
            assert running.wait() == 0, running.errors
    by_mm2(site, 3 * SOME, exactly_once=True)

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * SOME


def test_no_turns_with_a_mirrormaker_2_at_least_once(site: Site) -> None:
    """It would read positions of aborted transactions, and skip their records."""
    by_mm2(site, 0)

    with mirror(site.config(**SOURCE_EXACTLY_ONCE), "--once") as refused:
        assert refused.wait() == UNSAFE

    (line,) = refused.errors
    assert "MirrorMaker 2 writes at least once, so it cannot take turns" in line


def test_mirrormaker_2_and_we_take_turns_without_a_verb(site: Site) -> None:
    """Each continues where the other one ended: MirrorMaker 2, we, MirrorMaker 2, we."""
    for turn in range(2):
        by_mm2(site, 2 * turn * SOME)
        site.produce(SOME, start=(2 * turn + 1) * SOME)
        copy(site)

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * SOME


def test_a_mirrormaker_2_that_runs_is_refused(site: Site) -> None:
    """Two writers would repeat each other's records."""
    log = site.folder / "java.log"
    site.produce(SOME)
    with running_mm2(mm2_file(site, exactly_once=False), log) as java:
        wait_until(
            lambda: copied(site) >= SOME or java.poll() is not None,
            within=COPIES_WITHIN,
            what=f"copies, see {log}",
        )
        with mirror(site.config(**SOURCE), "--check") as refused:
            assert refused.wait() == UNSAFE
    (line,) = refused.errors
    assert "MirrorMaker 2 runs: group" in line
    assert "Stop it first." in line
