"""The linters and the check of the wording, as tests: one command checks everything."""

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

WRITTEN = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
)
WORD_LIST = "tests/test_lint.py"
SOURCES = sorted(
    path
    for folder in ("eos_mirror", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if path.relative_to(ROOT).as_posix() != WORD_LIST
)


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["codespell_lib"]],
    ids=" ".join,
)
def test_the_tool_has_nothing_to_say(command: list[str]) -> None:
    """ruff, mypy and codespell report nothing."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


TEXTS = {
    tokenize.COMMENT,
    tokenize.STRING,
    getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),  # f-strings are split since Python 3.12
}


def texts_of(source: Path) -> Iterator[str]:
    """Yield the texts that people read: a whole page, or the comments and strings of a module."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        yield text
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in TEXTS:
            yield token.string


@pytest.mark.parametrize(
    "source", [*WRITTEN, *SOURCES], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_text_has_no_private_idiom(source: Path) -> None:
    """No page, comment or string contains a word that a reader has to translate."""
    for text in texts_of(source):
        found = IDIOMS.search(" ".join(text.split()))

        assert found is None, f"{found[0]!r} in: {text[:200]}"
