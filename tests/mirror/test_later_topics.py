"""A check finds which internal topics could not be created once they are needed."""

import pytest

from tests.mirror.command_line import check
from tests.mirror.conftest import Site

pytestmark = pytest.mark.brokers

TOO_MANY = 9
"""Replicas; the target has fewer brokers."""


def test_a_check_names_a_topic_that_the_target_would_refuse_later(site: Site) -> None:
    """With the key to change; nothing is created by asking."""
    site.produce(40)
    wanted = {"emit_checkpoints_enabled": "true", "checkpoints_topic_replication_factor": TOO_MANY}
    code, (warning, plan) = check(site.config(**wanted))

    topic = f"{site.flow.source}.checkpoints.internal"
    assert code == 0
    assert (warning["event"], warning["flow"]) == ("flow.warning", str(site.flow))
    assert warning["reason"].startswith(f"{topic} would not be created on {site.flow.target}: ")
    assert "Set checkpoints.topic.replication.factor to at most" in warning["reason"]
    assert plan["topics"] == {site.topic: site.remote}

    code, (plan,) = check(site.config(**{**wanted, "checkpoints_topic_replication_factor": 1}))
    assert (code, plan["create"]) == (0, [site.remote])
    names = site.target.admin().list_topics(timeout=10).topics
    assert not [name for name in names if site.flow.source in name]
