"""`eos-mirror offsets rebuild` finds positions again that the target has lost."""

import os
import signal

import pytest

from eos_mirror.core.ledger import Kind
from eos_mirror.kafka.ledger import read_ledger
from tests.mirror.command_line import offsets, shown
from tests.mirror.conftest import Site
from tests.mirror.proofs import verify
from tests.mirror.surgery import produce_values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

FIRST, SECOND, EACH = 400, 800, 100


def lose_shadow_group(site: Site) -> None:
    """Delete it, as the target does when nothing was committed for too long."""
    done = site.target.tool("ConsumerGroupCommand", "--delete", "--group", site.flow.shadow_group)
    assert "was successful" in done.stdout, done


def mirror_and_kill(site: Site) -> None:
    """Leave the end of the map in the metadata of the shadow offsets, which are lost later."""
    with mirror(site.config()) as running:
        running.wait_for("ready")
        site.produce(FIRST)
        site.wait_caught_up()
        task = running.pid()
        os.kill(running.process.pid, signal.SIGSTOP)  # or it would start another task
        os.kill(task, signal.SIGKILL)
        running.kill()


def test_a_lost_shadow_group_is_rebuilt_from_the_map_and_the_copy(site: Site) -> None:
    """Nothing comes twice, and nothing is missing."""
    mirror_and_kill(site)
    lose_shadow_group(site)
    site.produce(SECOND - FIRST, start=FIRST)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors
        running.wait_for("partition.stopped", count=site.partitions, cause="PositionLost")
    code, plan = offsets(site, "rebuild", "--plan")
    assert code == 5, plan
    compared = f"(the offset map stored 0; {EACH} records of {site.remote}-0 compared)"
    assert f"{site.topic}-0: continues at {EACH} {compared}, {EACH} offsets to come\n" in plan

    code, answer = offsets(site, "rebuild", "--yes")

    assert code == 0, answer
    assert f"{site.flow}: {site.partitions} positions written\n" in answer
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    found = site.compare()
    assert found.exact, found
    assert found.matched == SECOND
    entries = read_ledger(site.target.client_config(), site.flow)
    assert [one.details["from"] for one in entries if one.kind is Kind.MODE] == ["map"]
    assert {one["map_start"] for one in shown(site).values()} == {EACH}
    code, (topic,), text = verify(site)
    assert code == 0, text
    assert topic["matched"] == SECOND - FIRST, "from where the new map begins"
    assert offsets(site, "rebuild", "--plan") == (0, f"{site.flow}: no position is lost\n")


def test_a_copy_that_another_client_has_written_is_refused(site: Site) -> None:
    """Its end is no end of the source."""
    mirror_and_kill(site)
    lose_shadow_group(site)
    produce_values(site.target, site.remote, [b"foreign"])

    code, answer = offsets(site, "rebuild", "--yes")

    assert code == 4, answer
    said = f"{site.topic}-0: the offset map stored 0, and the end of {site.remote}-0 fits nowhere"
    assert said in answer
    assert offsets(site, "rebuild", "--plan")[0] == 4, "nothing was written"


def test_a_copy_of_which_the_map_knows_nothing_is_not_taken_over(site: Site) -> None:
    """Our claims do not fence its writer. The end of such a copy may fit all the same."""
    mirror_and_kill(site)
    other = f"{site.topic}-other"
    site.source.create_topic(other, 1)
    site.target.create_topic(f"{site.flow.source}.{other}", 1)
    for cluster, topic in ((site.source, other), (site.target, f"{site.flow.source}.{other}")):
        produce_values(cluster, topic, [b"foreign"])
    lose_shadow_group(site)

    code, answer = offsets(site, "rebuild", "--yes")

    assert code == 4, answer
    assert f"{site.flow} {other}-0: " in answer
    assert "another program wrote them. Take its copy over with `adopt`" in answer


def test_without_an_offset_map_there_is_nothing_to_rebuild(site: Site) -> None:
    """A flow that never ran is simply run."""
    site.produce(FIRST)

    code, answer = offsets(site, "rebuild", "--plan")

    assert code == 2, answer
    assert answer.count("\n") == 1
    assert "it has never mirrored exactly once" in answer
