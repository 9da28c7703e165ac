"""Groups whose offsets lie before the first mirrored record: moved to it, or named."""

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import groups, quiet_status
from tests.mirror.conftest import Site, make_site
from tests.mirror.group_sync import SYNCED, checkpoints, commit, mirrored, wait_moved, wait_rounds
from tests.mirror.toolbox import mirror
from tests.mirror.translation import Truth, everywhere

pytestmark = [pytest.mark.brokers, pytest.mark.long]

EACH = 100
"""Records of each partition."""


def expire(site: Site, before: int) -> None:
    """Delete the records before this offset from every partition of the source topic."""
    partitions = [ClientPartition(site.topic, p, before) for p in range(site.partitions)]
    for answer in site.source.admin().delete_records(partitions).values():
        assert answer.result(10).low_watermark == before


def test_a_group_whose_next_records_expired_starts_at_the_beginning_of_the_copy(
    site: Site,
) -> None:
    """On the source the group would read the first record that is left; so it does on the copy."""
    site.produce(EACH * site.partitions)
    for group, offset in (("late", 30), ("fine", 70)):
        commit(site.source, group, everywhere(site, offset))
    expire(site, 50)
    config = site.config(**SYNCED)
    with mirrored(site, config) as running:
        truth = Truth(site)
        wait_moved(site, "fine", truth.of(everywhere(site, 70)))
        wait_moved(site, "late", dict.fromkeys(truth.remotes, 0))
        wait_rounds(running)
        assert not running.found("group.waiting")

    assert {one.offset for one in checkpoints(site, "late").values()} == {0}
    late = groups(config)["late"]
    assert late["reason"] == ""
    assert {(p["committed"], p["upstream"], p["downstream"]) for p in late["partitions"]} == {
        (30, 50, 0)
    }
    assert quiet_status(config, "--groups").splitlines() == [
        f"{site.flow}: 2 groups, 0 behind on {site.flow.target}",
        "  fine: 4 partitions, in step",
        "  late: 4 partitions, in step",
    ]


def test_a_group_before_records_that_were_not_mirrored_is_named_and_not_moved(
    tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster
) -> None:
    """It would skip them. When they have expired on the source, too, it is moved."""
    site = make_site(tmp_path, source_cluster, target_cluster, partitions=1)
    site.produce(EACH)
    commit(site.source, "late", everywhere(site, 30))
    config = site.config(**SYNCED, start_position="latest")
    why = (
        f"{site.topic}-0: records before offset {EACH} were not mirrored (up to 70); "
        f"the group is at 30"
    )
    remote = TopicPartition(site.remote, 0)
    with mirror(config) as running:
        assert running.wait_for("group.waiting", group="late")["reason"] == why
        site.produce(EACH, start=EACH)
        site.wait_caught_up()
        commit(site.source, "fine", everywhere(site, EACH + 50))
        wait_moved(site, "fine", {remote: 50})
        wait_rounds(running, 3)
        assert len(running.found("group.waiting")) == 1
        assert not checkpoints(site, "late")

        late = groups(config)["late"]
        assert late["reason"] == why
        assert [(one["upstream"], one["there"]) for one in late["partitions"]] == [(None, None)]
        assert quiet_status(config, "--groups").splitlines() == [
            f"{site.flow}: 2 groups, 1 not translated",
            "  fine: 1 partition, in step",
            f"  late: 1 partition, 1 not translated: {why}",
        ]

        expire(site, EACH - 1)
        wait_rounds(running)
        assert not checkpoints(site, "late"), "one record is left that was not mirrored"
        expire(site, EACH)
        wait_moved(site, "late", {remote: 0})
        assert running.stop() == 0, running.errors


def test_a_group_before_the_end_of_an_expired_partition_gets_the_end_of_the_empty_copy(
    site: Site,
) -> None:
    """Nothing is left for the group on the source, and it reads every later record of the copy."""
    site.produce(EACH * site.partitions)
    for group, offset in (("at the end", EACH), ("before it", EACH - 10)):
        commit(site.source, group, everywhere(site, offset))
    expire(site, EACH)
    with mirrored(site, site.config(**SYNCED)):
        remotes = [TopicPartition(site.remote, p) for p in range(site.partitions)]
        for group in ("at the end", "before it"):
            wait_moved(site, group, dict.fromkeys(remotes, 0))
        site.produce(40, start=EACH * site.partitions)
        site.wait_caught_up()
        commit(site.source, "before it", everywhere(site, EACH + 5))
        wait_moved(site, "before it", Truth(site).of(everywhere(site, EACH + 5)))


def test_at_least_once_a_group_before_the_first_sync_is_named(
    tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster
) -> None:
    """The syncs do not say where its records are on the copy, so it is not moved."""
    site = make_site(tmp_path, source_cluster, target_cluster, partitions=1)
    site.produce(EACH)
    commit(site.source, "late", everywhere(site, 30))
    expire(site, 50)
    mode = {"emit_offset-syncs_enabled": "true", "transaction_producer": "false"}
    config = site.config(**{**SYNCED, **mode})
    with mirror(config) as running:
        reason = running.wait_for("group.waiting", group="late")["reason"]
        wait_rounds(running)
        assert len(running.found("group.waiting")) == 1
        assert not checkpoints(site, "late")
        assert running.stop() == 0, running.errors

    assert reason == (
        f"{site.topic}-0: offsets before {EACH} cannot be translated; the group is at 30"
    )
    assert groups(config)["late"]["reason"] == reason
