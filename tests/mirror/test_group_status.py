"""`status --groups`: which groups could resume on the target now, and why others could not."""

import pytest

from eos_mirror.kafka.group_offsets import HAS_MEMBERS
from eos_mirror.operate.group_status import SYNC_IS_OFF
from tests.mirror.command_line import groups, quiet_status
from tests.mirror.conftest import Site
from tests.mirror.group_sync import SETTINGS, SYNCED, commit, member, mirrored, wait_moved
from tests.mirror.translation import Truth, everywhere

pytestmark = pytest.mark.brokers

EACH = 100
"""Records of each partition."""


def test_each_group_is_said_to_be_in_step_ahead_or_kept_and_by_what(site: Site) -> None:
    """Each group has its state, its reason and its offsets, which are compared with both logs."""
    site.produce(EACH * site.partitions)
    for group, offset in (("follows", 50), ("reads", 50), ("ahead", EACH + 1_000)):
        commit(site.source, group, everywhere(site, offset))
    config = site.config(**SYNCED)
    with mirrored(site, config) as running:
        truth = Truth(site)
        at = {n: truth.of(everywhere(site, n)) for n in (50, 90, EACH)}
        for group, offset in (("follows", 50), ("reads", 50), ("ahead", EACH)):
            wait_moved(site, group, at[offset])
        with member(site, "reads"):
            commit(site.source, "reads", everywhere(site, 90))
            running.wait_for("group.waiting", group="reads")
            found, text = groups(config), quiet_status(config, "--groups")

    expected = {
        "follows": ("", 50, 50, 50, False, False),
        "reads": (HAS_MEMBERS, 90, 90, 50, False, True),
        "ahead": ("", EACH + 1_000, EACH, EACH, True, False),
    }
    assert found == {
        group: {
            "flow": str(site.flow),
            "group": group,
            "reason": reason,
            "partitions": [
                {
                    "source": f"{site.topic}-{remote.partition}",
                    "remote": str(remote),
                    "committed": committed,
                    "upstream": upstream,
                    "downstream": at[upstream][remote],
                    "there": at[there][remote],
                    "ahead": is_ahead,
                    "behind": is_behind,
                }
                for remote in truth.remotes
            ],
        }
        for group, (reason, committed, upstream, there, is_ahead, is_behind) in expected.items()
    }
    assert text.splitlines() == [
        f"{site.flow}: 3 groups, 1 behind on {site.flow.target}",
        "  ahead: 4 partitions, 4 ahead of the mirror",
        "  follows: 4 partitions, in step",
        f"  reads: 4 partitions, 4 behind on the target: {HAS_MEMBERS}",
    ]


def test_a_group_that_nobody_moves_is_said_to_be_behind_for_that(site: Site) -> None:
    """Without the sync a group lags on the target, and `status` names the setting as the reason."""
    site.produce(EACH * site.partitions)
    commit(site.source, "left", everywhere(site, 10))
    config = site.config(**SETTINGS)
    assert groups(config) == {}
    with mirrored(site, config):
        pass
    (left,) = groups(config).values()
    assert left["reason"] == SYNC_IS_OFF
    assert [(one["upstream"], one["there"], one["behind"]) for one in left["partitions"]] == [
        (10, None, True)
    ] * site.partitions
