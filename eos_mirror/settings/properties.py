"""
Parses the grammar of java.util.Properties and records the place of every key.

Two things differ from Java, both harmless to a file that Java reads as meant. A file that is valid
UTF-8 is read as UTF-8 (Java: always ISO-8859-1). A lone backslash at the end is ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eos_mirror.errors import ConfigError

BLANK = " \t\f"
"""Characters that separate and indent. A no-break space is an ordinary character."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY_AND_VALUE = re.compile(
    r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """
    One `key = value` and the place where it begins.

    Attributes:
        value: Unescaped; trailing blanks are kept. Not in the repr, because it may be a secret.
        line: Counted from 1; the first line of a continued one.
    """

    key: str
    value: str = field(repr=False)
    file: str
    line: int

    @property
    def place(self) -> str:
        """Return `file:line`, as compilers print it."""
        return f"{self.file}:{self.line}"


def read_properties(path: str | Path) -> list[Property]:
    """
    Read every property of a file, in order.

    Raises:
        ConfigError: The file cannot be read, or an escape is malformed.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc.strerror}") from exc
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    return parse_properties(text, file=str(path))


def parse_properties(text: str, *, file: str) -> list[Property]:
    """
    Parse every property, in order; the last of duplicates counts.

    Raises:
        ConfigError: A `\\u` is not followed by four hexadecimal digits; lists every such line.

    Source: java.util.Properties.load.
    """
    found, faults = [], []
    for line, logical in _logical_lines(text):
        match = _KEY_AND_VALUE.fullmatch(logical)
        if match is None:  # cannot happen: a logical line never ends in a lone backslash
            raise ConfigError(f"{file}:{line}: not a property")
        try:
            key, value = _unescape(match["key"]), _unescape(match["value"])
        except ValueError as exc:
            faults.append(f"{file}:{line}: {exc}")
            continue
        found.append(Property(key=key, value=value, file=file, line=line))
    if faults:
        raise ConfigError(*faults)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join lines over trailing backslashes and skip comments; yield the first line's number too."""
    logical, start = "", 0
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(BLANK)
        if not logical:
            if not line or line[0] in "#!":
                continue
            start = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            logical += line[:-1]
        else:
            yield start, logical + line
            logical = ""
    if logical:
        yield start, logical


def _unescape(text: str) -> str:
    """
    Resolve backslashes; `\\u` pairs of surrogates become one character.

    Raises:
        ValueError: A `\\u` is malformed.
    """
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_escaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape == "u":
        raise ValueError(r"malformed \u: write four hexadecimal digits after it, or '\\u'")
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _CONTROL.get(escape, escape)
