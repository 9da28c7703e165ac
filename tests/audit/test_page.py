"""The page of a proof shows the content of the report, and contains no active content."""

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.audit.page import page_of

BROWSER = shutil.which("chromium")

RECORD = {
    "timestamp": 1_700_000_000_777,
    "timestamp_type": "create",
    "key": "k777",
    "value": "<script>alert(1)</script>",
    "headers": [["trace", "abc"]],
}


def partition(number: int, **fields: Any) -> dict[str, Any]:
    """Return a partition without differences, except for these fields."""
    return {
        "partition": number,
        "upstream": [0, 5_000],
        "downstream": [0, 5_050],
        "matched": 5_000,
        "filtered": 0,
        "expanded": 0,
        "differences": [],
        "explained": {},
        "unproven": [],
        **fields,
    }


def report(*topics: dict[str, Any], holds: bool) -> dict[str, Any]:
    """Return the report of one flow."""
    return {"version": 1, "digest": 1, "flow": "A->B", "holds": holds, "topics": list(topics)}


def topic(name: str, *partitions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return one topic of a report."""
    return {
        "source": name,
        "target": f"A.{name}",
        "matched": sum(one["matched"] for one in partitions),
        "filtered": sum(one["filtered"] for one in partitions),
        "expanded": sum(one["expanded"] for one in partitions),
        "partitions": list(partitions),
        "incomparable": {},
        **fields,
    }


ALTERED = {
    "kind": "altered",
    "upstream_offset": 777,
    "target_partition": 1,
    "downstream_offset": 790,
    "fields": ["value"],
    "source_record": RECORD,
    "target_record": {**RECORD, "value": "other"},
}
EXPIRED = {"start": 0, "end": 800, "cause": "expired on the source", "reason": ""}
BROKEN = topic(
    "orders",
    partition(0),
    partition(1, differences=[ALTERED], matched=4_999),
    partition(2, upstream=[800, 5_000], matched=4_200, unproven=[EXPIRED]),
)


class Reader(HTMLParser):
    """Collects the text, the tags and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the tag and its links."""
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        """Record the text."""
        self.text += data


def read(*reports: dict[str, Any]) -> Reader:
    """Parse the page of these reports."""
    reader = Reader()
    reader.feed(page_of(reports, made="2026-01-02 03:04 UTC", version="1.2.3"))
    return reader


def test_a_copy_without_differences_is_shown_as_one() -> None:
    """A copy without differences is shown as such, with the number of its records."""
    shown = read(report(topic("orders", partition(0), partition(1)), holds=True))
    assert "No difference: 10,000 records match" in shown.text
    assert "eos_mirror 1.2.3, 2026-01-02 03:04 UTC" in shown.text


def test_a_difference_is_shown_with_both_records() -> None:
    """A difference is shown with both records and offsets; record content is escaped text."""
    shown = read(report(topic("fine", partition(0)), BROKEN, holds=False))
    assert "1 difference: 19,199 records match" in shown.text
    assert "upstream offset 777, downstream offset 790 of partition 1" in shown.text
    assert "<script>alert(1)</script>" in shown.text
    assert "other" in shown.text
    assert shown.text.index("orders") < shown.text.index("fine"), "differences come first"
    assert "expired on the source" in shown.text


def test_what_is_filtered_or_expanded_is_shown_beside_what_matches() -> None:
    """The line of the topic has the sums, and the bar of a partition its own."""
    one, other = partition(0, filtered=1_200), partition(1, filtered=3, expanded=2)
    shown = read(report(topic("orders", one, other), topic("fine", partition(0)), holds=True))
    assert "2 partitions: 10,000 match, 1,203 filtered, 2 expanded" in shown.text
    assert "partition 1: [0, 5000), 5000 match, 3 filtered, 2 expanded" in shown.text
    assert "1 partition: 5,000 match" in shown.text
    assert shown.text.count("filtered") == 3


@pytest.mark.parametrize("count", [1, 48, 49, 500])
def test_every_partition_has_its_place_in_the_picture(count: int) -> None:
    """The picture has every partition, whatever their number."""
    shown = read(report(topic("orders", *map(partition, range(count))), holds=True))
    assert shown.tags.count("svg") == 1
    assert shown.tags.count("title") == count + 1


def test_a_topic_that_is_gone_is_shown() -> None:
    """A topic that is gone is shown with the reason, although it has no partitions."""
    gone = topic("orders", incomparable={"orders-0": "A.orders is gone from B"})
    shown = read(report(gone, holds=False))
    assert "1 partition not fully compared" in shown.text
    assert "A.orders is gone from B" in shown.text


def test_a_position_that_was_set_back_is_shown() -> None:
    """The page says from where on the copy is compared."""
    again = [{"partition": 0, "start": 20, "end": 60, "downstream": 61, "has_duplicates": True}]
    shown = read(report(topic("orders", partition(0), mirrored_again=again), holds=True))
    assert "set back from 60 to 20; the copy is compared from offset 61 on" in shown.text


def test_the_page_needs_nothing_else() -> None:
    """The page loads no script, style sheet or picture."""
    shown = read(report(BROKEN, holds=False))
    assert not shown.links
    assert not {"script", "link", "img", "iframe"} & set(shown.tags)


def test_pages_can_be_looked_at(tmp_path: Path) -> None:
    """Three example pages are small, and a browser, if there is one, renders them."""
    pages = {
        "green": report(topic("orders", *map(partition, range(8))), holds=True),
        "broken": report(topic("fine", *map(partition, range(4))), BROKEN, holds=False),
        "large": report(topic("events", *map(partition, range(500))), holds=True),
    }
    for name, one in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(page_of([one], made="2026-01-02 03:04 UTC", version="1.2.3"))
        assert path.stat().st_size < 200_000
        if BROWSER:
            assert photograph(BROWSER, path).stat().st_size > 10_000


def photograph(browser: str, page: Path) -> Path:
    """Write a screenshot beside the page, and return its path."""
    picture = page.with_suffix(".png")
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,900",
         f"--user-data-dir={page.parent / 'browser'}", f"--screenshot={picture}", page.as_uri()],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return picture


def test_a_range_that_cannot_be_read_is_a_verdict() -> None:
    """A range that cannot be read is neither a difference nor a success."""
    gap = {"start": 0, "end": 800, "cause": "unreadable", "reason": "a corrupt batch"}
    page = page_of(
        [report(topic("orders", partition(0, unproven=[gap])), holds=False)], made="", version=""
    )

    assert "No difference, but 1 partition not fully compared: 5,000 records match" in page
    assert "unreadable: a corrupt batch" in page


def test_records_are_shown_as_people_read_them() -> None:
    """Headers have a line each, null differs from empty, and timestamps are readable."""
    record = {**RECORD, "headers": [["trace", None], ["span", ""]]}
    odd = {**ALTERED, "source_record": record, "target_record": RECORD}
    page = page_of(
        [report(topic("orders", partition(0, differences=[odd])), holds=False)], made="", version=""
    )

    assert "<code>trace: null</code><br><code>span: </code>" in page
    assert "2023-11-14 22:13:20.777+00:00" in page
