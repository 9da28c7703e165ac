"""The modes of a flow as configurations, and a run that catches up."""

from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

SOME = 2_000

SINK = {"connector_type": "sink"}
AT_LEAST_ONCE = {**SINK, "transaction_producer": "false"}
SOURCE = {"connector_type": "source"}
SOURCE_EXACTLY_ONCE = {**SOURCE, "exactly_once_source_support": "enabled"}
ADOPT = {**SINK, "mode_change": "adopt"}

KEPT = {"tasks_max": 2, "transaction_boundary_records": 1_000}


def copy(site: Site, **settings: object) -> None:
    """Run a source connector until it has caught up."""
    with mirror(site.config(**{**SOURCE, **settings}, tasks_max=2), "--once") as running:
        assert running.wait() == 0, running.errors
