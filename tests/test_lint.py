"""The tools' own verdict, as tests: one command checks everything."""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IDIOMS = re.compile(
    r"\b(for ever|anew|by class|go(es|ing)? on|went on|gone on|at once|somebody|nobody|whoever|"
    r"likewise|whose fault|hundredths|on (its|their) way|under way|of one run|mend(s|ed|ing)?|told)"
    r"\b",
    re.IGNORECASE,
)
"""Words that a reader has to translate. docs/glossary.md and CONTRIBUTING.md say how to write."""

WRITTEN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted((ROOT / "eos_mirror").rglob("*.py"))


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["codespell_lib"]],
    ids=" ".join,
)
def test_the_tool_has_nothing_to_say(command: list[str]) -> None:
    """No warning, no untyped definition, one format, no typing error."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def texts_of(source: Path) -> Iterator[str]:
    """What a person reads of a page or of a module: comments, docstrings, messages."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        yield text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string


@pytest.mark.parametrize(
    "source", [*WRITTEN, *SOURCES], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_text_has_no_private_idiom(source: Path) -> None:
    """An English-speaking Kafka engineer understands it at the first reading."""
    for text in texts_of(source):
        found = IDIOMS.search(" ".join(text.split()))

        assert found is None, f"{found[0]!r} in: {text[:200]}"
