"""Renders the report of a proof as one self-contained HTML page: no script, no network."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

from eos_mirror.audit.extent import Cause

Document = Mapping[str, Any]
"""A document of `report.Report.document`."""

NOT_SAMPLED = Cause.NOT_SAMPLED.value
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BARS = 48
"""Topics with more partitions show a square for each partition instead of a bar."""

WIDTH, BAR, SQUARE, PER_ROW = 600, 8, 11, 50
COUNTED = ("filtered", "expanded")
"""Source records that have no copy, or several, on purpose."""

FIELDS = ("key", "value", "headers", "timestamp", "timestamp_type")

STYLE = """
:root { color-scheme: light dark; --ok: #1a7f4b; --bad: #c4312b; --unknown: #8a8f98;
  --line: #8885; --soft: #8881; --explained: #b98300; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem; }
h2 small { font-weight: normal; opacity: .7; }
.verdict { font-size: 1.1rem; font-weight: 600; padding: .5rem .8rem; border-radius: .4rem;
  border: 2px solid; margin: 1rem 0; }
.ok { color: var(--ok); } .bad { color: var(--bad); } .unknown { color: var(--unknown); }
.explained { color: var(--explained); }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top; }
th { font-weight: 600; opacity: .7; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; margin: .5rem 0; max-width: 100%; }
.side { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.5rem; border-left: 3px solid
  var(--line); padding-left: .8rem; margin: .2rem 0 1rem; }
.side > div { min-width: 0; } .side code { overflow-wrap: anywhere; }
.differs { background: #f003; } code { font-size: .92em; }
footer { margin-top: 3rem; opacity: .7; font-size: .9rem; }
"""


def page_of(reports: Sequence[Document], *, made: str, version: str) -> str:
    """
    Render all reports as one page.

    Args:
        made: Date and time to show.
        version: Version of eos_mirror.
    """
    flows = ", ".join(report["flow"] for report in reports)
    body = "".join(part for report in reports for part in _flow(report))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(flows)}: verify</title><style>{STYLE}</style></head><body>"
        f"{body}<footer>eos_mirror {escape(version)}, {escape(made)}. "
        "A record matches if its key, value, headers in order and timestamp are equal, "
        "and the order is the same.</footer></body></html>\n"
    )


def _flow(report: Document) -> Iterator[str]:
    topics = report["topics"]
    partitions = [one for topic in topics for one in topic["partitions"]]
    differences = sum(len(one["differences"]) for one in partitions)
    lost = sum(len(topic["incomparable"]) for topic in topics)
    lost += sum(any(map(_is_harmful, one["unproven"])) for one in partitions)
    matched = sum(topic["matched"] for topic in topics)
    gaps = sum(len(one["unproven"]) for one in partitions)
    if report["holds"]:
        verdict, kind = "No difference", "ok"
    else:
        found = [
            _count(differences, "difference") if differences else "No difference",
            *([f"{_count(lost, 'partition')} not fully compared"] if lost else []),
        ]
        verdict, kind = ", but ".join(found), "bad"
    yield f"<h1>Proof of {escape(report['flow'])}</h1>"
    yield f'<p class="verdict {kind}">{verdict}: {_n(matched)} records match'
    yield f"; not compared: {_count(gaps, 'range')}</p>" if gaps else "</p>"
    for topic in sorted(topics, key=_badness, reverse=True):
        yield from _topic(topic)


def _is_harmful(gap: Document) -> bool:
    return not Cause(gap["cause"]).is_harmless


def _badness(topic: Document) -> int:
    """Return the sort key that puts topics with differences first."""
    differences = sum(len(one["differences"]) for one in topic["partitions"])
    return differences + len(topic["incomparable"])


def _topic(topic: Document) -> Iterator[str]:
    partitions = topic["partitions"]
    yield f"<h2>{escape(topic['source'])} <small>as {escape(topic['target'])}</small></h2>"
    kinds = Counter(d["kind"] for one in partitions for d in one["differences"])
    explained: Counter[str] = sum((Counter(one["explained"]) for one in partitions), Counter())
    facts = [
        f'<span class="ok">{_n(topic["matched"])} match</span>',
        *(
            f'<span class="explained">{_n(topic[kind])} {kind}</span>'
            for kind in COUNTED
            if topic[kind]
        ),
        *(f'<span class="bad">{_n(count)} {escape(kind)}</span>' for kind, count in kinds.items()),
        *(
            f'<span class="explained">{_n(count)} {escape(why)}</span>'
            for why, count in explained.items()
        ),
    ]
    yield f"<p>{_count(len(partitions), 'partition')}: {', '.join(facts)}</p>"
    yield _bars(partitions) if len(partitions) <= BARS else _squares(partitions)
    yield from _gaps(topic)
    yield from _differences(partitions)


def _bars(partitions: Sequence[Document]) -> str:
    """Draw a bar for each partition: what was compared, what was not, and where it differs."""
    if not partitions:
        return ""
    rows = []
    for row, one in enumerate(partitions):
        first, last = _span(one)
        scale = WIDTH / max(1, last - first)
        top = row * (BAR + 2)
        title = f"<title>{escape(_summary(one))}</title>"
        x = (one["upstream"][0] - first) * scale
        width = max(1.0, (one["upstream"][1] - one["upstream"][0]) * scale)
        rows.append(f"<g>{title}{_rect(0, top, WIDTH, 'unknown', '.35')}")
        rows.append(_rect(x, top, width, "ok", ".8"))
        for gap in one["unproven"]:
            left = (gap["start"] - first) * scale
            rows.append(_rect(left, top, (gap["end"] - gap["start"]) * scale, "unknown", "1"))
        for difference in one["differences"]:
            at = min(WIDTH - 2, (difference["upstream_offset"] - first) * scale)
            rows.append(_rect(at, top, 2, "bad", "1"))
        rows.append("</g>")
    height = len(partitions) * (BAR + 2)
    return _svg(WIDTH, height, "".join(rows), "a bar for each partition")


def _squares(partitions: Sequence[Document]) -> str:
    """Draw a square for each partition: whether it has a difference or a gap."""
    marks = []
    for number, one in enumerate(partitions):
        kind = "bad" if one["differences"] else "unknown" if one["unproven"] else "ok"
        row, column = divmod(number, PER_ROW)
        marks.append(
            f'<rect x="{column * (SQUARE + 1)}" y="{row * (SQUARE + 1)}" width="{SQUARE}" '
            f'height="{SQUARE}" fill="var(--{kind})"><title>{escape(_summary(one))}</title></rect>'
        )
    height = -(-len(partitions) // PER_ROW) * (SQUARE + 1)
    return _svg(WIDTH, height, "".join(marks), "a square for each partition")


def _span(one: Document) -> tuple[int, int]:
    """Return the first and the last offset that the partition mentions."""
    starts = [one["upstream"][0], *(gap["start"] for gap in one["unproven"])]
    return min(starts), max(one["upstream"][1], *starts)


def _rect(x: float, y: float, width: float, kind: str, opacity: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{max(1.0, width):.1f}" height="{BAR}" '
        f'fill="var(--{kind})" opacity="{opacity}"/>'
    )


def _svg(width: int, height: int, inside: str, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{label}">{inside}</svg>'
    )


def _summary(one: Document) -> str:
    start, end = one["upstream"]
    wrong = f", {_count(len(one['differences']), 'difference')}" if one["differences"] else ""
    gaps = f", not compared: {_count(len(one['unproven']), 'range')}" if one["unproven"] else ""
    copies = "".join(f", {one[kind]} {kind}" for kind in COUNTED if one[kind])
    matched = f"{one['matched']} match{copies}"
    return f"partition {one['partition']}: [{start}, {end}), {matched}{wrong}{gaps}"


def _gaps(topic: Document) -> Iterator[str]:
    """Render what was not compared, and why."""
    rows = [
        f"<tr><td>partition {one['partition']}<td class=n>{gap['start']}<td class=n>{gap['end']}"
        f"<td>{escape(gap['cause'])}{': ' if gap['reason'] else ''}{escape(gap['reason'])}"
        for one in topic["partitions"]
        for gap in one["unproven"]
        if gap["cause"] != NOT_SAMPLED
    ]
    rows += [
        f"<tr><td>{escape(partition)}<td><td><td>{escape(reason)}"
        for partition, reason in topic["incomparable"].items()
    ]
    not_sampled = sum(
        gap["end"] - gap["start"]
        for one in topic["partitions"]
        for gap in one["unproven"]
        if gap["cause"] == NOT_SAMPLED
    )
    for one in topic.get("mirrored_again", ()):
        yield (
            f"<p class=explained>partition {one['partition']}: its position was set back from "
            f"{_n(one['end'])} to {_n(one['start'])}; the copy is compared from offset "
            f"{_n(one['downstream'])} on</p>"
        )
    if not_sampled:
        yield f"<p class=unknown>{NOT_SAMPLED}: {_count(not_sampled, 'offset')}</p>"
    if rows:
        yield "<table class=unknown><tr><th>not compared<th>from<th>to<th>because"
        yield f"{''.join(rows)}</table>"


def _differences(partitions: Sequence[Document]) -> Iterator[str]:
    """Render the first differences of each partition, with both records if they are known."""
    for one in partitions:
        shown = [difference for difference in one["differences"] if "fields" in difference]
        if not shown:
            continue
        yield f"<h3>Partition {one['partition']}</h3>"
        for difference in shown:
            yield _difference(difference)
        more = len(one["differences"]) - len(shown)
        yield f"<p>and {_n(more)} more</p>" if more else ""


def _difference(one: Document) -> str:
    fields = f" ({escape(', '.join(one['fields']))})" if one["fields"] else ""
    head = (
        f'<p><b class="bad">{escape(one["kind"])}</b>{fields}: upstream offset '
        f"{one['upstream_offset']}, downstream offset {one['downstream_offset']} of partition "
        f"{one['target_partition']}</p>"
    )
    if "source_record" not in one:
        return head
    source, target = one["source_record"], one["target_record"]
    return (
        f'{head}<div class="side"><div><b>source</b>{_record(source, target)}</div>'
        f"<div><b>target</b>{_record(target, source)}</div></div>"
    )


def _record(one: Document | None, other: Document | None) -> str:
    if one is None:
        return "<p>no record</p>"
    rows = []
    for field in FIELDS:
        is_odd = other is not None and one[field] != other[field]
        value = _field(field, one[field])
        mark = " class=differs" if is_odd else ""
        rows.append(f"<tr><th>{field.replace('_', ' ')}<td{mark}>{value}")
    return f"<table>{''.join(rows)}</table>"


def _field(name: str, value: Any) -> str:
    """Render a field's value."""
    if value is None:
        return "null"
    if name == "headers":
        lines = [
            f"<code>{escape(key)}: {escape('null' if text is None else text)}</code>"
            for key, text in value
        ]
        return "<br>".join(lines) or "none"
    if name == "timestamp" and value >= 0:
        at = EPOCH + timedelta(milliseconds=value)
        return (
            f"<code>{value}</code> <small>{at.isoformat(sep=' ', timespec='milliseconds')}</small>"
        )
    return f"<code>{escape(str(value))}</code>"


def _n(count: int) -> str:
    return f"{count:,}"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
