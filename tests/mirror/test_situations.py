"""`status`, HTTP, metrics and events name each situation, and nothing claims health before."""

import pytest

from tests.mirror.command_line import status_and_code
from tests.mirror.conftest import Site
from tests.mirror.situation_stage import SEEN_BY_THE_RUN, Seen, staged
from tests.mirror.situations import SITUATIONS
from tests.mirror.surgery import delete_topic

pytestmark = [pytest.mark.brokers, pytest.mark.long]


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_is_named_until_it_is_over(site: Site, name: str) -> None:
    """After the repair everything is well without a restart, where there is a repair."""
    site = Site(**{**vars(site), "partitions": 4})
    with staged(site, site.config(**SEEN_BY_THE_RUN)) as stage:
        for seen in SITUATIONS[name](stage):
            stage.shows(seen)


def test_a_deleted_topic_is_missed_long_before_the_next_check_of_the_topics(site: Site) -> None:
    """Its partitions count as failed only until then; the others are mirrored throughout."""
    other = f"{site.topic}-other"
    site.source.create_topic(other, 1)
    config = site.config(**{**SEEN_BY_THE_RUN, "refresh_topics_interval_seconds": 600})
    with staged(site, config) as stage:
        delete_topic(site.source, site.topic)
        stage.shows(Seen(state="mirroring", event="topic.deleted", fields={"topic": site.topic}))
        text, code = status_and_code(config)
        assert f"  {site.topic}: deleted on the source; its copy {site.remote} stays" in text
        assert code == 0
