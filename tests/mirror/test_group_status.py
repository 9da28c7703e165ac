"""`status --groups`: which groups could go on on the target now, and why others could not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.operate.group_status import SYNC_IS_OFF
from eos_mirror.tasks.group_offset_sync import HAS_MEMBERS
from tests.mirror.conftest import Site
from tests.mirror.test_checkpoints import (
    SETTINGS,
    SYNCED,
    Truth,
    commit,
    everywhere,
    member,
    mirrored,
    wait_moved,
)

pytestmark = pytest.mark.brokers

EACH = 100
"""Records of each partition."""


def status(config: Path, *arguments: str) -> str:
    """What `status` prints."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "status", str(config), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr
    return done.stdout


def groups(config: Path) -> dict[str, dict[str, Any]]:
    """The objects of all groups, by name."""
    lines = map(json.loads, status(config, "--groups", "--json").splitlines())
    return {one["group"]: one for one in lines}


def test_each_group_is_said_to_be_in_step_ahead_or_kept_and_by_what(site: Site) -> None:
    """Asked of the clusters beside a run; every offset is compared with both logs."""
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
            found, text = groups(config), status(config, "--groups")

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
    """Only checkpoints are kept; what was never mirrored has no groups."""
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
