"""
Checks a draft with the loader, and writes it as the text of an mm2.properties.

What the loader has no use for leaves the text and is reported. What it does not accept makes the
conversion fail, because the flow would not do what the input says.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from eos_mirror.errors import ConfigError
from eos_mirror.settings.draft import Draft, Entry, key_of
from eos_mirror.settings.load import check_properties
from eos_mirror.settings.properties import BLANK, Property
from eos_mirror.settings.sections import MISPLACED

USELESS = ("no effect", "accepted, no effect", "unknown key", "unknown client setting")
"""How the loader begins to speak about a line that nothing uses."""

CLIENT_PREFIXES = ("source.consumer.", "source.admin.", "target.admin.", "producer.")
"""Of settings that tune a client. If a value is impossible, the flow runs without it."""

STORES = ("ssl.truststore.", "ssl.keystore.", "ssl.key.password")
"""Of settings that name files, which need not exist where the conversion runs."""

NOT_HERE = "${"
"""In a value that only the machine of a run can resolve."""

STAND_IN = "1"
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def settle(draft: Draft) -> None:
    """
    Remove the lines that the loader has no use for, and report them.

    Raises:
        ConfigError: Fields that make the conversion impossible, one line each. The user removes
            them or gives them another value.
    """
    draft.add("", "clusters", Entry(value=", ".join(draft.clusters), path="the aliases"))
    draft.add("", "emit.heartbeats.enabled", Entry(value="false", path="the flows"))
    while not draft.faults and _settle_once(draft):
        pass
    if draft.faults:
        raise ConfigError(*draft.faults)


def _settle_once(draft: Draft) -> bool:
    """Remove the useless lines that the loader finds; return whether there were some."""
    lines = list(draft.ordered())
    useless = set()
    for number, text, is_fault in _findings(draft, lines):
        if number is None:
            draft.faults.append(text)
            continue
        owner, name, entry = lines[number]
        what = _without_key(text, key_of(owner, name), entry.value)
        is_useless = what.startswith(USELESS) or what.endswith(tuple(MISPLACED.values()))
        if is_useless or (is_fault and name.startswith(CLIENT_PREFIXES)):
            useless.add(number)
            draft.refuse(entry.path, what)
        elif is_fault and not _is_for_the_run(name, entry):
            draft.fault(entry.path, what)
    for number in useless:
        owner, name, _ = lines[number]
        del draft.lines[owner, name]
    return bool(useless)


def _findings(
    draft: Draft, lines: Sequence[tuple[str, str, Entry]]
) -> Iterator[tuple[int | None, str, bool]]:
    """Yield what the loader says: the index of the line, the text, and whether it is a fault."""
    properties = [
        Property(key=key_of(owner, name), value=entry.value, file=draft.file, line=number)
        for number, (owner, name, entry) in enumerate(lines)
    ]
    try:
        settings = check_properties(
            Path(draft.file), properties, environ=dict.fromkeys(draft.needs, STAND_IN)
        )
        texts, is_fault = settings.notes, False
    except ConfigError as exc:
        texts, is_fault = tuple(exc.faults), True
    place = re.compile(rf"{re.escape(draft.file)}:(\d+): ")
    for text in texts:
        match = place.match(text)
        if match:
            yield int(match[1]), text[match.end() :], is_fault
        elif is_fault:
            yield None, text, True


def _without_key(text: str, key: str, value: str) -> str:
    """Return what the loader says about a line, without the line and without what to do with it."""
    what = text.removeprefix(key).removeprefix(f" = {value}").removeprefix(": ")
    return re.sub("; remove (the line|it, or .*)$", "", what)


def _is_for_the_run(name: str, entry: Entry) -> bool:
    """Return whether only the machine of a run can tell that a value is wrong."""
    return NOT_HERE in entry.value or name.startswith(STORES)


def text_of(draft: Draft, *, verb: str) -> str:
    """Return the text of the configuration, with what the user has to provide and to decide."""
    head = [f"An equivalent of {draft.file}, by 'eos-mirror {verb}'."]
    if draft.needs:
        head += ["", "Set these, or name what you use instead, such as ${dir:/folder:file}:"]
        head += [f"  {name}: {holds}" for name, holds in draft.needs.items()]
    head += ["", *draft.remarks, *([draft.first_steps] if draft.first_steps else ())]
    text = "".join(f"# {line}".rstrip() + "\n" for line in head)
    last = None
    for owner, name, entry in draft.ordered():
        if owner != last:
            text += "\n"
        text += f"{key_of(owner, name)} = {_escaped(entry.value)}".rstrip() + "\n"
        last = owner
    return text


def _escaped(value: str) -> str:
    """Escape a value that is trimmed."""
    return "".join(_ESCAPES.get(sign, sign) for sign in value.strip(BLANK))
