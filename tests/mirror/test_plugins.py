"""Users' own classes on real brokers: those that docs/plugins.md shows."""

import os
import re
from pathlib import Path

import pytest

from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror, produce

pytestmark = pytest.mark.brokers

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


def modules(folder: Path, listed: Path) -> dict[str, str]:
    """Write the modules of the page into a folder; return the environment that finds them."""
    blocks = re.findall(r'```python\n(""".*?)```', PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        (name,) = re.findall(r'"""(\w+\.py):', block)
        (folder / name).write_text(block.replace("/etc/mirror/topics", str(listed)))
    return {"PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))}


def test_names_and_topics_are_what_the_users_classes_say(site: Site) -> None:
    """Topics that the filter includes can change during a run, and no record is doubled."""
    listed = site.folder / "topics"
    other = f"{site.topic}-too"
    site.source.create_topic(other, site.partitions)
    listed.write_text(f"{site.topic} {other}")
    env = modules(site.folder, listed)
    config = site.config(
        replication_policy_class="my_names.Suffixed",
        topic_filter_class="my_topics.Listed",
        group_filter_class="my_topics.Listed",
        message_handler="my_handler.Lines",
        message_handler_args="test",
        rebalance_listener="my_listener.Owned",
        rebalance_listener_args=site.folder / "owned",
        summary_interval_seconds=1,
    )
    remotes = {topic: f"{topic}-{site.flow.source}" for topic in (site.topic, other)}

    def caught_up(topic: str) -> None:
        site.view.wait_caught_up(topic, remotes[topic], partitions=site.partitions)

    with mirror(config, env=env) as running:
        for topic in remotes:
            produce(site.source, topic, 400, partitions=site.partitions)
            caught_up(topic)
        owned = [f"{topic}-{p}" for topic in remotes for p in range(site.partitions)]
        assert (site.folder / "owned").read_text().split() == sorted(owned)
        listed.write_text(site.topic)
        running.wait_for("flow.summary", owned=site.partitions)
        produce(site.source, other, 400, partitions=site.partitions, start=400)
        produce(site.source, site.topic, 400, partitions=site.partitions, start=400)
        caught_up(site.topic)
        assert (site.folder / "owned").read_text().split() == sorted(owned[: site.partitions])
        assert max(site.view.positions(remotes[other], site.partitions).values()) == 100
        listed.write_text(f"{site.topic} {other}")
        caught_up(other)
        assert running.stop() == 0, running.errors
    for topic, remote in remotes.items():
        compared = site.compare(topic, remote)
        assert compared.exact, compared
        assert compared.matched == 800
