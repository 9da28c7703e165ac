"""Groups are translated on both sides of a takeover: by MirrorMaker 2 before it, by us after it."""

import json
import subprocess
import sys

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.group_sync import SYNCED, checkpoints, commit, mirrored, wait_moved
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.remote_clusters import Questions
from tests.mirror.takeovers import adopt, copied, mm2_file
from tests.mirror.translation import Truth, everywhere

pytestmark = [pytest.mark.brokers, pytest.mark.long]

EACH = 500
"""Records of each partition before the takeover, and as many after it."""

STOOD_AT, WENT_TO = 200, 700
CHECKPOINTS = """\
emit.checkpoints.enabled = true
emit.checkpoints.interval.seconds = 1
refresh.groups.interval.seconds = 1
offset.lag.max = 10
{source}->{target}.groups = still-{topic}, moving-{topic}
"""


def translated(site: Site, offset: int) -> tuple[int, bool]:
    """Return what the verb says of an offset of the first partition, and if it is exact."""
    done = subprocess.run(
        [sys.executable, "-m", "eos_mirror.cli.main", "translate", str(site.config()),
         str(site.flow), site.topic, "0", str(offset), "--json"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert ("a lower bound" in done.stderr) is not answer["exact"]
    return answer["translated"], answer["exact"]


def test_groups_are_translated_on_both_sides_of_a_takeover(site: Site) -> None:
    """One group stands before it, and one passes it. Java's client is a witness."""
    still, moving = f"still-{site.topic}", f"moving-{site.topic}"
    site.produce(EACH * site.partitions)
    for group in (still, moving):
        commit(site.source, group, everywhere(site, STOOD_AT))
    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, exactly_once=False, more=CHECKPOINTS), log):
        wait_until(
            lambda: (
                copied(site) == EACH * site.partitions
                and all(
                    len(checkpoints(site, group)) == site.partitions for group in (still, moving)
                )
            ),
            within=COPIES_WITHIN,
            what=f"copies and checkpoints, see {log}",
        )
    code, answer = adopt(site, "--quiet", "1")
    assert code == 0, answer

    with mirrored(site, site.config(**SYNCED)):
        site.produce(EACH * site.partitions, start=EACH * site.partitions)
        site.wait_caught_up()
        commit(site.source, moving, everywhere(site, WENT_TO))
        wait_moved(site, moving, Truth(site).of(everywhere(site, WENT_TO)))

    asked = Questions(aliases=["X"], translated=[site.flow.source], groups=[still, moving])
    answers = asked.to_us(site.target, {})
    assert answers == asked.to_java(site.target, {})
    before = checkpoints(site, still).values()
    assert all(0 < one.offset <= STOOD_AT for one in before), before
    passed = Truth(site).of(everywhere(site, WENT_TO))
    assert {p: one.offset for p, one in checkpoints(site, moving).items()} == passed

    remote = TopicPartition(site.remote, 0)
    bound, is_exact = translated(site, STOOD_AT)
    assert (0 < bound <= STOOD_AT, is_exact) == (True, False)
    assert translated(site, WENT_TO) == (passed[remote], True)
