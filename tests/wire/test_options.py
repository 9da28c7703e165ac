"""The settings that our own lane reads of a configuration, and the page that lists them."""

import re
from pathlib import Path

from eos_mirror.wire.options import fetch_settings, producer_settings

PAGE = Path(__file__).parents[2] / "docs" / "client-settings.md"


class Read(dict[str, str]):
    """A configuration that notes which settings are read."""

    def __init__(self) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "client.id": "mine"})
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        """Return a setting, and note its name."""
        self.names.add(name)
        return super().get(name, default)


def test_the_page_of_client_settings_lists_what_our_own_lane_reads() -> None:
    """A setting that is not in the table, and not about logins or TLS, has no effect on it."""
    consumer, producer = Read(), Read()
    fetch_settings(consumer)
    producer_settings(producer)
    _, _, text = PAGE.read_text(encoding="utf-8").partition("<!-- lane settings: begin -->")
    rows = re.findall(
        r"^\| (`.+`) \| (\S+) \|", text.partition("<!-- lane settings: end -->")[0], re.M
    )
    listed = {
        prefix: {
            name for names, where in rows if where in {prefix, "both"} for name in names.split("`")
        }
        - {"", ", "}
        for prefix in ("`consumer.`", "`producer.`")
    }
    clusters = {"bootstrap.servers", "client.id"}

    assert listed["`consumer.`"] - clusters == consumer.names
    assert listed["`producer.`"] - clusters == producer.names
