"""The alert rules of Prometheus."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.delivery.files import CONFIG, ROOT, read_yaml, run_tool, yaml_of
from tests.delivery.series import ALL, named_in

RULES: Final = CONFIG / "monitoring" / "alerts.yaml"
CASES: Final = Path(__file__).with_name("alerts_test.yaml")
PAGE: Final = ROOT / "docs" / "monitoring.md"


@pytest.fixture
def alerts() -> dict[str, dict[str, Any]]:
    """The rules by name."""
    (group,) = read_yaml(RULES)["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_prometheus_accepts_the_rules() -> None:
    """The file has the form that Prometheus loads."""
    assert "SUCCESS" in run_tool("promtool", "check", "rules", RULES)


def test_the_rules_fire_when_they_should() -> None:
    """Prometheus evaluates the rules over the series of the cases."""
    assert "SUCCESS" in run_tool("promtool", "test", "rules", CASES)


def test_every_rule_is_seen_to_fire_and_to_be_quiet(alerts: dict[str, dict[str, Any]]) -> None:
    """The cases contain each alert with and without the state that it reports."""
    checks = [check for case in read_yaml(CASES)["tests"] for check in case["alert_rule_test"]]

    assert {c["alertname"] for c in checks if c.get("exp_alerts")} == set(alerts)
    assert {c["alertname"] for c in checks if not c.get("exp_alerts")} == set(alerts)


def test_the_rules_name_series_that_exist(alerts: dict[str, dict[str, Any]]) -> None:
    """A rule about a series that does not exist never fires."""
    for name, rule in alerts.items():
        assert named_in(rule["expr"]), name
        assert named_in(rule["expr"]) <= ALL, name


def test_every_rule_says_how_grave_it_is_and_what_to_do(alerts: dict[str, dict[str, Any]]) -> None:
    """The person on call gets a severity, two texts, and a section of the runbook."""
    for name, rule in alerts.items():
        assert rule["labels"]["severity"] in {"warning", "critical"}, name
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}, name
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert anchor in anchors(ROOT / page), f"{name}: {page} has no heading {anchor}"


def test_every_rule_has_its_row(alerts: dict[str, dict[str, Any]]) -> None:
    """The page lists every alert with its severity and its link, and no others."""
    rows = re.findall(
        r"^\| `(EosMirror\w+)` \| (\w+) \| .+ \| \[.+\]\((\S+)\) \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )

    assert rows == [
        (name, rule["labels"]["severity"], rule["annotations"]["runbook_url"].split("/")[-1])
        for name, rule in alerts.items()
    ]


def test_the_page_names_series_that_exist() -> None:
    """Every series of ours that the page names is exported."""
    text = PAGE.read_text(encoding="utf-8")
    ours = {
        name for name in named_in(text) if name.startswith(("eos_mirror_", "kafka_connect_mirror_"))
    }

    assert ours
    assert sorted(ours - ALL) == []


def test_the_scrape_configuration_of_the_page_is_valid(tmp_path: Path) -> None:
    """Prometheus loads the snippet with the alert rules."""
    snippets = re.findall(
        r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    (snippet,) = (one for one in snippets if "scrape_configs" in one)
    assert yaml_of(snippet)["rule_files"] == [RULES.name]
    path = tmp_path / "prometheus.yml"
    path.write_text(snippet)
    (tmp_path / RULES.name).write_text(RULES.read_text(encoding="utf-8"))

    run_tool("promtool", "check", "config", path)
