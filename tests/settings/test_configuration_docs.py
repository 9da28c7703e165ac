"""The reference page matches the table of keys."""

import re
from pathlib import Path

from eos_mirror.settings.accepted import NAMES, PREFIXES, RENAMED
from eos_mirror.settings.clients import COMMON, CONSUMER, HEARTBEATS, PRODUCER
from eos_mirror.settings.connector import ConnectorSettings
from eos_mirror.settings.filters import FilterSettings
from eos_mirror.settings.forced import CONNECTION_RULES, MAX_IN_FLIGHT, MEMBER_RULES, WRITER_RULES
from eos_mirror.settings.groups import GroupSettings
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.keys import (
    CONNECTOR_ROWS,
    FILTER_ROWS,
    FLOW_ROWS,
    GROUP_ROWS,
    HEARTBEAT_ROWS,
    METRIC_ROWS,
    REFUSAL_ROWS,
    REST_ROWS,
    ROWS,
    TABLE,
    TOP_ROWS,
)
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.model import FlowSettings, Settings
from eos_mirror.settings.reference import BEGIN, END, reference
from eos_mirror.settings.refusals import RefusalSettings
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.values import RESERVED_ALIASES
from tests.settings.conftest import Load

ALL_ROWS = (
    *FLOW_ROWS,
    *FILTER_ROWS,
    *GROUP_ROWS,
    *HEARTBEAT_ROWS,
    *METRIC_ROWS,
    *CONNECTOR_ROWS,
    *REFUSAL_ROWS,
    *REST_ROWS,
    *TOP_ROWS,
)
PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_the_page_has_the_table_as_it_is() -> None:
    """The page has a row for every key, and no other rows."""
    _, _, rest = PAGE.partition(BEGIN)
    block = f"{BEGIN}{rest.partition(END)[0]}{END}\n"

    assert block == reference(), "run python -m eos_mirror.settings.reference"


def test_every_key_has_one_row() -> None:
    """Names are unique among the used and the ignored keys."""
    names = [row.name for row in TABLE]

    assert len(names) == len(set(names)) == len(ROWS)
    assert not set(names) & set(NAMES)
    assert not set(RENAMED) & (set(names) | set(NAMES))
    assert not any(name.startswith(tuple(PREFIXES)) for name in names)


def test_every_field_has_its_row() -> None:
    """Every field of the settings has a key."""
    composed = {"flow", "clients", "path", "clusters", "flows", "notes", "origins"}
    composed |= {"spark", "verify_spark", "heartbeats", "client", "groups", "metrics", "filters"}
    composed |= {"rest", "refusals", "connector", "queues"}
    models = (
        FlowSettings,
        FilterSettings,
        GroupSettings,
        HeartbeatSettings,
        MetricSettings,
        ConnectorSettings,
        RefusalSettings,
        RestSettings,
        Settings,
    )
    fields = {name for model in models for name in model.__dataclass_fields__}

    assert {row.attribute for row in ALL_ROWS} == fields - composed


def test_every_default_can_be_written(load: Load) -> None:
    """Setting a key to its documented default changes only the origins."""
    written = "".join(
        f"{row.name} = {row.key.default.replace(chr(92), chr(92) * 2)}\n"
        for row in ALL_ROWS
        if row.key.default
    )

    assert load(written).flows == load().flows
    assert load(written).heartbeats == load().heartbeats


def test_the_page_names_every_forced_setting() -> None:
    """The page explains every setting that is forced, renamed or reserved."""
    rules = (*CONNECTION_RULES, *MEMBER_RULES, *WRITER_RULES, MAX_IN_FLIGHT)
    for name in (*rules, *RENAMED, *RESERVED_ALIASES):
        assert f"`{name}`" in PAGE, name


def test_the_page_names_every_client_default() -> None:
    """The page names every client default with its value."""
    for defaults in (COMMON, CONSUMER, PRODUCER, HEARTBEATS):
        for name, value in defaults.items():
            assert f"`{name}={value}`" in PAGE, name


def test_every_snippet_of_the_page_loads(load: Load) -> None:
    """Every snippet of properties on the page is a valid configuration."""
    snippets = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)

    assert snippets
    for snippet in snippets:
        load(snippet, base="", environ={"A_PASSWORD": "x", "A_SECRET": "x"})
