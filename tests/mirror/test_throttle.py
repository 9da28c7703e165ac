"""A limit is ordered, shown and lifted; nothing is lost or doubled meanwhile."""

import json

import pytest

from tests.mirror.command_line import CONFIGURATION, fails, status, status_and_code, verb
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

RECORDS = 4_000


@pytest.mark.parametrize("mode", ["true", "false"], ids=["exactly once", "at least once"])
def test_a_limited_flow_takes_its_time_until_the_limit_is_lifted(site: Site, mode: str) -> None:
    """It is limited from its first record, and ready all the same. `status` says who did it."""
    config = site.config(session_timeout_ms=6_000, transaction_producer=mode)
    said = verb("throttle", config, site, "--records-per-second", "200", "--reason", "night")
    limited = "all topics together: 200 records/s"
    assert said == f"{site.flow}: {limited} as soon as the flow runs\n"
    site.produce(RECORDS)
    with mirror(config) as running:
        running.wait_for("ready")
        copied = sum(map(len, site.values()))
        assert copied < RECORDS
        shown, code = status_and_code(config)
        assert code == 0, shown
        assert "  all topics together: limited to 200 records/s since " in shown
        assert ": night\n" in shown
        (limit,) = json.loads(status(config, "--json"))["limits"]
        assert (limit["topic"], limit["records_per_second"]) == (None, 200)
        assert "@" in limit["by"]

        said = verb("throttle", config, site, "--off")
        assert (
            said == f"{site.flow}: every limit of the flow is lifted, also those of single topics\n"
        )
        running.wait_for("topics.throttled", limit="no limit")
        assert "limited" not in status(config)
        assert running.stop() == 0, running.errors
    with mirror(config, "--once") as last:
        assert last.wait() == 0, last.errors
    assert site.compare().exact


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "throttle: give --bytes-per-second, --records-per-second, or --off"),
        (["--off", "--records-per-second", "5"], "throttle: give "),
        (["--off", "--topics", "("], "--topics (: no regular expression"),
    ],
)
def test_a_wrong_limit_is_one_line(site: Site, arguments: list[str], says: str) -> None:
    """Nothing is written."""
    code, lines = fails("throttle", str(site.config()), str(site.flow), *arguments)
    assert code == CONFIGURATION
    assert len(lines) == 1
    assert says in lines[0]
