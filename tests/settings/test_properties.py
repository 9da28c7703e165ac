"""The grammar of java.util.Properties."""

import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.errors import ConfigError
from eos_mirror.settings.properties import parse_properties, read_properties

ORACLE = Path(__file__).with_name("PropertiesOracle.java")
CHARACTERS = " \t\f\\\\\\=:#!ab\u00e9\u2028\x85\n\r\n.,$u0041"
TEXTS = 3000

keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
entries = st.dictionaries(keys, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
blanks = st.sampled_from(["", " ", "\t", " \f "])
separators = st.sampled_from(["=", ":", " ", "\t", " = ", " : "])
line_ends = st.sampled_from(["\n", "\r", "\r\n"])


def parsed(text: str) -> dict[str, str]:
    """Return keys and values as the loader sees them."""
    return {p.key: p.value for p in parse_properties(text, file="f")}


def escaped(text: str) -> str:
    """Escape every character that could have a meaning as UTF-16, as Java does."""
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(c) if chr(c).isalnum() and c < 128 else f"\\u{c:04x}" for c in codes)


@given(entries, st.data())
def test_what_is_written_is_read_back(values: dict[str, str], data: st.DataObject) -> None:
    """Any keys and values are read back, with any separator, indent, line end or continuation."""
    text = ""
    for key, value in values.items():
        end = data.draw(line_ends)
        middle = escaped(value)
        if middle and data.draw(st.booleans()):
            middle = f"\\{end}{data.draw(blanks)}{middle}"
        comment = f"{data.draw(blanks)}# comment \\{end}" if data.draw(st.booleans()) else ""
        text += f"{comment}{data.draw(blanks)}{escaped(key)}{data.draw(separators)}{middle}{end}"

    assert parsed(text) == values


@given(st.text(alphabet=CHARACTERS, max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is read, or refused with a ConfigError that names the lines."""
    refused: Sequence[str] = ()
    try:
        parse_properties(text, file="f")
    except ConfigError as exc:
        refused = exc.faults

    assert all(fault.startswith("f:") and "malformed" in fault for fault in refused)


def test_java_reads_the_same() -> None:
    """java.util.Properties reads the same keys and values from random difficult texts."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("no JDK on the PATH to compare with")
    rng = random.Random(20250131)
    texts = ["".join(rng.choices(CHARACTERS, k=rng.randint(0, 40))) + "." for _ in range(TEXTS)]
    answer = subprocess.run(
        [Path(javac).with_name("java"), "-XX:TieredStopAtLevel=1", str(ORACLE)],
        input="\n".join(text.encode().hex() for text in texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.split("\n")

    malformed = 0
    for text, line in zip(texts, answer, strict=False):
        if line == "malformed":
            malformed += 1
            with pytest.raises(ConfigError):
                parse_properties(text, file="f")
            continue
        pairs = (pair.split("=") for pair in line.split())
        java = {bytes.fromhex(k).decode(): bytes.fromhex(v).decode() for k, v in pairs}
        assert parsed(text) == java, repr(text)
    assert len(answer) > TEXTS
    assert 0 < malformed < TEXTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a\\ b\\=c = d", {"a b=c": "d"}),
        ("a = b  ", {"a": "b  "}),
        ("a = b # c", {"a": "b # c"}),
        ("  # a = b\n ! c = d", {}),
        ("a = b, \\\n   c", {"a": "b, c"}),
        ("a = b\\\\\nc = d", {"a": "b\\", "c": "d"}),
        ("a = b\\\n# c", {"a": "b# c"}),
        ("a = x\na = y", {"a": "y"}),
        (r"a = foo\.bar", {"a": "foo.bar"}),
        (r"a = foo\\.bar", {"a": r"foo\.bar"}),
        (r"a = \u00e9\t\uD83D\uDE00", {"a": "\u00e9\t\U0001f600"}),
        ("A->B.enabled=true", {"A->B.enabled": "true"}),
        ("a = x\u2028y", {"a": "x\u2028y"}),
    ],
)
def test_each_rule_of_the_grammar(text: str, expected: dict[str, str]) -> None:
    """Separators, escapes, comments, continuations and duplicates are read as in Java."""
    assert parsed(text) == expected


def test_a_line_number_is_that_of_the_first_line() -> None:
    """The number of a continued line is that of its start; comments and blank lines count."""
    text = "# one\n\na = 1 \\\r\n  2\nb = 3\r"

    assert [(p.key, p.line) for p in parse_properties(text, file="f")] == [("a", 3), ("b", 5)]


def test_every_malformed_escape_is_reported() -> None:
    """Every malformed \\u is reported, with its line and the fix."""
    with pytest.raises(ConfigError) as caught:
        parse_properties("a = \\u12\nb = 1\n\\uxyz = 2", file="f")

    assert caught.value.faults == (
        r"f:1: malformed \u: write four hexadecimal digits after it, or '\\u'",
        r"f:3: malformed \u: write four hexadecimal digits after it, or '\\u'",
    )


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-8-sig"])
def test_both_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    """A file is read as UTF-8, with or without BOM, or as ISO-8859-1 if it is not valid UTF-8."""
    path = tmp_path / "f"
    path.write_bytes("name = caf\u00e9".encode(encoding))

    assert [(p.key, p.value) for p in read_properties(path)] == [("name", "caf\u00e9")]


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    """A missing file is a fault with its name and the system's reason."""
    with pytest.raises(ConfigError, match=r"none: cannot be read: No such file or directory"):
        read_properties(tmp_path / "none")
