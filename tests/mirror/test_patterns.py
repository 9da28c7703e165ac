"""Which topics a list of patterns includes, on real brokers."""

import pytest

from tests.mirror.command_line import checked
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror, produce, topics_of, write_config

pytestmark = pytest.mark.brokers


def test_a_count_with_a_comma_keeps_topics_on_the_source(site: Site) -> None:
    """`topics.exclude = .*-[0-9]{2,4}` is one pattern: topics that match it are never copied."""
    name = site.topic.removeprefix("orders-")
    excluded = [f"audit-{name}-2024", f"orders-{name}-12"]
    mirrored = f"orders-{name}-x"
    for topic in (*excluded, mirrored):
        site.source.create_topic(topic, 1)
        produce(site.source, topic, 3, partitions=1)
    config = write_config(
        site.folder,
        flow=site.flow,
        source=site.source,
        target=site.target,
        topics=f"(audit|orders)-{name}-.*",
        topics_exclude=".*-[0-9]{2,4}",
    )

    (plan,) = checked(config)
    assert plan["topics"] == {mirrored: f"{site.flow.source}.{mirrored}"}
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    there = {topic for topic in topics_of(site.target) if topic.startswith(f"{site.flow.source}.")}
    assert there == {f"{site.flow.source}.{mirrored}"}
