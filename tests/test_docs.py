"""The pages match the code, in both directions, and the examples on the pages work."""

import argparse
import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_mirror import errors
from eos_mirror.cli.copied_rows import CHANGES
from eos_mirror.cli.main import VERBS
from eos_mirror.cli.verify import DIFFERENT, INTERRUPTED
from eos_mirror.errors import MirrorError
from eos_mirror.runtime.outcome import ExitCode
from eos_mirror.runtime.spark_settings import DEFAULTS, ENFORCED, LOCAL_DEFAULTS
from eos_mirror.settings.load import load_settings
from eos_mirror.telemetry.events import EVENTS
from eos_mirror.telemetry.metrics import METRICS
from tests.import_law import ALLOWED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FRAGMENT = "# fragment"
JVM_DIED = ExitCode.ORPHAN
COMMAND_LINE = 2
"""Exit code of argparse for a wrong command line; the same as for a faulty configuration."""


def name_of(page: Path) -> str:
    """Return the name of a page, such as `docs/cli.md`."""
    return page.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    """Return the text of a page of docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return the text under a heading, up to the next one of the same or a higher level."""
    level = heading.index(" ")
    start = text.index(f"{heading}\n") + len(heading)
    end = re.search(rf"^#{{1,{level}}} ", text[start:], re.MULTILINE)
    return text[start:] if end is None else text[start : start + end.start()]


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row, without heads and rules."""
    lines = re.findall(r"^\|(.+)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]
    rules = {i for i, row in enumerate(cells) if all(re.fullmatch(r":?-+:?", c) for c in row)}
    return [row for i, row in enumerate(cells) if not {i, i + 1} & rules]


def first_words(text: str) -> list[str]:
    """Return the code in the first cell of every row that begins with code."""
    found = (re.match(r"`([^`]+)`", row[0]) for row in rows(text))
    return [match[1] for match in found if match]


# ------------------------------------------------------------------ reference pages


def test_every_event_has_its_row() -> None:
    """The page lists every event of the code with name, level and text, and nothing else."""
    listed = [row[:3] for row in rows(section(text_of("events.md"), "# Events"))[2:]]

    assert listed == [[f"`{e.name}`", e.level.value, e.text] for e in EVENTS]


def test_every_event_says_what_it_asks_of_a_person() -> None:
    """The operations page says what to do about every event, and names no other events."""
    asks = section(text_of("operations.md"), "## What to do about an event")
    named = {word for row in rows(asks) for word in re.findall(r"`([^`]+)`", row[0])}

    assert named == {event.name for event in EVENTS}


def test_every_metric_has_its_row() -> None:
    """The page lists every metric of the code with name, unit, kind and meaning."""
    wanted = [
        [f"`{m.name}`", f"`{m.unit}`" if m.unit else "", m.kind.value, m.text] for m in METRICS
    ]

    assert rows(text_of("metrics.md")) == wanted


def test_every_error_has_its_row() -> None:
    """The tree on the page is the tree in the code, and each class is explained once."""
    page = text_of("errors.md")
    classes = [
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, MirrorError)
    ]
    tree = re.search(r"```\n(MirrorError\n.*?)```", page, re.DOTALL)

    assert tree is not None
    assert tree[1].strip() in (errors.__doc__ or "")
    assert sorted(w for w in first_words(page) if not w.startswith("-")) == sorted(classes)


def test_every_exit_code_has_its_row() -> None:
    """The pages list the exit codes of commands and of task processes."""
    commands = rows(section(text_of("cli.md"), "## Exit codes"))
    codes = {value.exit_code for _, value in inspect.getmembers(errors, inspect.isclass)
             if issubclass(value, MirrorError)}  # fmt: skip
    tasks = rows(section(text_of("errors.md"), "## Exit codes of task processes"))

    assert {int(row[0]) for row in commands} == codes | {
        0,
        COMMAND_LINE,
        DIFFERENT,
        CHANGES,
        JVM_DIED,
        INTERRUPTED,
    }
    assert [(int(row[0]), row[1]) for row in tasks] == [(c.value, c.name) for c in ExitCode]


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the name of every verb with its parser, and with the parsers of its actions."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    for verb in VERBS:
        importlib.import_module(f"eos_mirror.cli.{verb}").register(subparsers)
    for name, parser in subparsers.choices.items():
        yield name, parser
        for action in parser._actions:  # noqa: SLF001 (argparse has no other way to ask)
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                yield from ((name, inner) for inner in action.choices.values())


def arguments(verb: str) -> set[str]:
    """Return the flags, positional arguments and actions that a user of the verb may write."""
    found: set[str] = set()
    for name, parser in parsers():
        for action in parser._actions if name == verb else ():  # noqa: SLF001
            if action.help is argparse.SUPPRESS or "--help" in action.option_strings:
                continue
            if action.option_strings:
                found.update(action.option_strings)
            elif isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                found.update(action.choices)
            else:
                found.add(str(action.metavar))
    return found


def test_every_verb_is_listed() -> None:
    """The page lists every verb of the command line, and has a section for each."""
    page = text_of("cli.md")
    listed = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\)", section(page, "## Verbs"), re.MULTILINE)
    headings = re.findall(r"^### (\w+)$", page, re.MULTILINE)

    assert {name for name, _ in listed} == set(VERBS) == set(headings)
    assert all(name == anchor for name, anchor in listed)


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_has_its_row(verb: str) -> None:
    """The page lists every flag, positional argument and action of a verb, and no others."""
    listed = first_words(section(text_of("cli.md"), f"### {verb}"))

    assert {word.split(" ")[0] for word in listed} == arguments(verb)


def test_every_spark_setting_has_its_row() -> None:
    """The page lists every enforced and every default Spark setting with its value."""
    page = section(text_of("spark.md"), "## Settings")
    shown = {
        name: row[1].strip("`")
        for row in rows(page)
        for name in re.findall(r"`(spark\.[\w.]+)`", row[0])
    }
    enforced = {name: value for name, (value, _) in ENFORCED.items()}
    python = "spark.pyspark.python"

    assert shown.pop(python)
    assert shown == {**enforced, **DEFAULTS, **LOCAL_DEFAULTS}


def test_the_import_law_has_its_table() -> None:
    """The page has a row for every part of the package, with the parts that it may import."""
    table = rows(section(text_of("architecture.md"), "## Who may import whom"))
    listed = {
        row[0].strip("`").removesuffix("/").removesuffix(".py").replace("/", "."): row[2]
        for row in table
    }

    assert set(listed) == set(ALLOWED)
    for part, words in listed.items():
        assert set(re.findall(r"`([\w.]+)`", words)) == ALLOWED[part], part


# ------------------------------------------------------------------ what pages refer to


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Every link points to an existing file and heading."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} is broken"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_can_be_found() -> None:
    """Every page is linked from the index or from the list of decisions."""
    index, decisions = text_of("index.md"), text_of("decisions/README.md")

    for page in DOCS.glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
    for page in (DOCS / "decisions").glob("0*.md"):
        assert f"({page.name})" in decisions, page.name


def test_every_page_that_the_code_names_exists() -> None:
    """Every page of docs/ that a source file names exists."""
    sources = [p for d in ("eos_mirror", "tests", "benchmarks") for p in (ROOT / d).rglob("*.py")]
    for source in [*sources, ROOT / "README.md", ROOT / "config" / "mm2.properties"]:
        for name in re.findall(r"\bdocs/[\w./-]+\.md\b", source.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{source.relative_to(ROOT)} names {name}"


def known_tests() -> set[str]:
    """Return the names of all test functions."""
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_test_that_a_page_names_exists() -> None:
    """Every test that a page names exists, above all those of the guarantees."""
    existing = known_tests()
    named = {
        name
        for page in PAGES
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))
    }

    assert len(re.findall(r"`test_\w+`", text_of("guarantees.md"))) > 20
    assert named <= existing, f"no such test: {', '.join(sorted(named - existing))}"


def test_every_file_that_a_page_names_exists() -> None:
    """Every Python file that a page names exists; pages may omit the name of the package."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`([\w./]+/[\w./]*\w+\.py)`", text):
            assert (ROOT / name).is_file() or (ROOT / "eos_mirror" / name).is_file(), (
                f"{name_of(page)} names {name}"
            )


# ------------------------------------------------------------------ what pages show


def snippets() -> list[tuple[str, str]]:
    """Return every complete properties file on a page, with the name of the page."""
    return [
        (name_of(page), snippet)
        for page in PAGES
        for snippet in re.findall(
            r"^```properties\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
        if not snippet.startswith(FRAGMENT)
    ]


@pytest.mark.parametrize(("page", "snippet"), snippets())
def test_every_snippet_loads(page: str, snippet: str, tmp_path: Path) -> None:
    """Every properties file on a page loads as it is."""
    path = tmp_path / "mm2.properties"
    path.write_text(snippet, encoding="utf-8")
    environ = dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", snippet), "x")

    settings = load_settings(path, environ=environ)

    assert settings.flows, page


def test_the_example_file_loads() -> None:
    """The example configuration loads, and none of its lines is without effect."""
    settings = load_settings(ROOT / "config" / "mm2.properties")

    assert not settings.notes


COMMAND = re.compile(r"^(?: {4})?(?:.*&& )?(?:\S*/)?eos-mirror ([a-z]+)(.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_on_a_page_can_be_typed(page: Path) -> None:
    """Every command on a page uses existing verbs and flags. Kafka's tools have their own."""
    for verb, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
        own, _, _ = rest.partition("#")[0].partition(" tool kafka-")
        flags = set(re.findall(r"(?<=[ \[])--[\w-]+(?:\.[\w-]+)*", own))

        assert verb in VERBS, f"eos-mirror {verb}"
        assert flags <= arguments(verb), f"eos-mirror {verb}: {flags - arguments(verb)}"


BENCHMARK = re.compile(r"^(python -m benchmarks ([\w-]+)(.*))$", re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "verb", "rest"), [m.groups() for m in BENCHMARK.finditer(text_of("benchmarks.md"))]
)
def test_every_benchmark_on_the_page_can_be_typed(line: str, verb: str, rest: str) -> None:
    """Every benchmark on the page starts, and accepts the flags."""
    usage = subprocess.run(
        [sys.executable, "-m", "benchmarks", verb, "--help"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip

    flags = set(re.findall(r"--[\w-]+", rest))
    assert flags <= set(re.findall(r"--[\w-]+", usage.stdout)), line
