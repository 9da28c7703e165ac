"""A copy that is deleted on the target ends nothing but the mirroring of its own topic."""

from datetime import timedelta

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.surgery import delete_topic
from tests.mirror.test_refused_topics import EVERY_SECOND, wait_for_checks
from tests.mirror.toolbox import mirror, produce

pytestmark = pytest.mark.brokers

SOON_S = 20


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_copy_deleted_while_the_flow_runs_ends_only_its_own_topic(
    site: Site, exactly_once: bool
) -> None:
    """It is reported once and not created again; other topics continue, and new ones come."""
    keep, new = f"{site.topic}-keep", f"{site.topic}-new"
    copies = {topic: f"{site.flow.source}.{topic}" for topic in (site.topic, keep, new)}
    site.source.create_topic(keep, site.partitions)
    for topic in (site.topic, keep):
        produce(site.source, topic, 400, partitions=site.partitions)
    config = site.config(transaction_producer=str(exactly_once).lower(), **EVERY_SECOND)

    def caught_up(topic: str, *, within_s: float = 60) -> None:
        if exactly_once:
            site.view.wait_caught_up(
                topic, copies[topic], partitions=site.partitions, within_s=within_s
            )
            return
        ends = site.view.ends(topic, site.partitions)
        wait_until(
            lambda: site.view.source_positions(topic, site.partitions) == ends,
            within=timedelta(seconds=within_s),
            what=f"offsets of {topic} at {ends}",
        )

    with mirror(config) as running:
        running.wait_for("ready")
        caught_up(site.topic)
        caught_up(keep)
        delete_topic(site.target, site.remote)
        refused = running.wait_for("topic.refused", topic=site.topic)
        assert f"deleted on {site.flow.target}" in refused["reason"]
        assert "docs/operations.md" in refused["reason"]
        site.source.create_topic(new, site.partitions)
        produce(site.source, new, 400, partitions=site.partitions)
        running.wait_for("topic.created", topic=copies[new], within_s=SOON_S)
        caught_up(new, within_s=SOON_S)
        produce(site.source, keep, 400, partitions=site.partitions, start=400)
        produce(site.source, site.topic, 400, partitions=site.partitions, start=400)
        caught_up(keep, within_s=SOON_S)
        wait_for_checks(running)
        assert running.stop() == 1, running.errors
    assert len(running.found("topic.refused")) == 1
    assert not running.found("chore.failed")
    assert site.remote not in site.target.admin().list_topics(timeout=10).topics
    for topic, count in ((keep, 800), (new, 400)):
        compared = site.compare(topic, copies[topic])
        assert compared.exact, compared
        assert compared.matched == count
