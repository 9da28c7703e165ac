"""
Parses `sasl.jaas.config`: one login module, its flag and its options.

The parser accepts what Kafka accepts (quotes of both kinds, backslash escapes, comments) and
refuses what Kafka refuses. No message repeats the text, because it contains a password.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKENS = re.compile(
    r"""
    (?P<skip>\s+|//[^\r\n]*|/\*.*?\*/)
  | (?P<word>[A-Za-z_$\-\u00a0-\uffff][\w.$\-\u00a0-\uffff]*)
  | "(?P<double>(?:\\.|[^"\\\r\n])*)"
  | '(?P<single>(?:\\.|[^'\\\r\n])*)'
  | (?P<mark>[=;])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasModule:
    """
    A login module.

    Attributes:
        name: Class name without its package, such as `PlainLoginModule`.
        options: Option values, unescaped; secrets included.
    """

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> JaasModule:
    """
    Read a JAAS configuration of one module.

    Raises:
        ValueError: The text is no such configuration; the message never quotes it.

    Source: org.apache.kafka.common.security.JaasConfig.
    """
    tokens = _tokens(text)
    name = _next_value(tokens, "no login module")
    if _next_value(tokens, "no control flag after the login module").lower() not in FLAGS:
        raise ValueError("the word after the login module must be 'required'")
    options = dict(_options(tokens))
    if next(tokens, None) is not None:
        raise ValueError("only one login module is possible")
    return JaasModule(name=name.rpartition(".")[2], options=options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind (`mark` or `value`) and text of every token."""
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise ValueError(
                f"not understood at character {at + 1}; quote values and close every quote"
            )
        at = match.end()
        kind = match.lastgroup
        if kind in {"double", "single"}:
            yield "value", _ESCAPE.sub(_escaped, match[kind])
        elif kind != "skip":
            yield ("mark" if kind == "mark" else "value"), match[0]


def _escaped(match: re.Match[str]) -> str:
    escape = match[1]
    return (
        chr(int(escape, 8)) if escape.isdigit() and escape < "8" else _CONTROL.get(escape, escape)
    )


def _next_value(tokens: Iterator[tuple[str, str]], missing: str) -> str:
    kind, text = next(tokens, ("end", ""))
    if kind != "value":
        raise ValueError(missing)
    return text


def _options(tokens: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield every `name=value` up to the semicolon."""
    for kind, name in tokens:
        if (kind, name) == ("mark", ";"):
            return
        if kind == "mark" or next(tokens, None) != ("mark", "="):
            raise ValueError('options must read name="value"')
        yield name, _next_value(tokens, f"option {name} has no value")
    raise ValueError("does not end with a semicolon")
