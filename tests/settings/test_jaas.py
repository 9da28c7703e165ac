"""The parser of sasl.jaas.config."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.settings.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def quoted(text: str) -> str:
    """Quote a text with double quotes and escapes."""
    special = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(special.get(c, c) for c in text) + '"'


@given(st.text(), st.text())
def test_any_user_and_password_can_be_written(user: str, password: str) -> None:
    """Any user name and password, quoted and escaped, is parsed unchanged."""
    module = parse_jaas(f"{PLAIN} required username={quoted(user)} password={quoted(password)};")

    assert module.name == "PlainLoginModule"
    assert module.options == {"username": user, "password": password}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("M required;", {}),
        ("M required a=b;", {"a": "b"}),
        ("M required a = 'b c' ;", {"a": "b c"}),
        ('M REQUIRED\n  a="x;y=z"\n  b="it\'s";', {"a": "x;y=z", "b": "it's"}),
        (r'M required a="\101\t\"";', {"a": 'A\t"'}),
        ("M required // user\n a=b /* and\n more */ c=d;", {"a": "b", "c": "d"}),
    ],
)
def test_each_form_of_an_option(text: str, options: dict[str, str]) -> None:
    """Options may have quotes of both kinds, escapes, comments and white space."""
    assert parse_jaas(text).options == options


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no login module"),
        ("M", "no control flag after the login module"),
        ("M must a=hunter2;", "the word after the login module must be 'required'"),
        ("M required a=hunter2", "does not end with a semicolon"),
        ("M required a hunter2;", 'options must read name="value"'),
        ("M required a=;", "option a has no value"),
        ("M required a=1hunter2;", "not understood at character 14"),
        ('M required a="hunter2;', "not understood at character 14"),
        ("M required a=b; N required;", "only one login module is possible"),
    ],
)
def test_a_fault_says_where_but_not_what(text: str, fault: str) -> None:
    """A malformed text is refused with the place, but without its password."""
    with pytest.raises(ValueError, match="^" + fault) as caught:
        parse_jaas(text)

    assert "hunter2" not in str(caught.value)


def test_a_module_does_not_show_its_options() -> None:
    """The repr of a module does not contain its options."""
    assert "hunter2" not in repr(parse_jaas("M required password=hunter2;"))
