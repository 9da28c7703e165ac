"""`status`, HTTP, metrics and events name each situation, and nothing claims health before."""

import pytest

from tests.mirror.conftest import Site
from tests.mirror.situation_stage import SEEN_BY_THE_RUN, staged
from tests.mirror.situations import SITUATIONS

pytestmark = [pytest.mark.brokers, pytest.mark.long]


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_is_named_until_it_is_over(site: Site, name: str) -> None:
    """After the repair everything is well without a restart, where there is a repair."""
    site = Site(**{**vars(site), "partitions": 4})
    with staged(site, site.config(**SEEN_BY_THE_RUN)) as stage:
        for seen in SITUATIONS[name](stage):
            stage.shows(seen)
