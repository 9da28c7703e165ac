"""Translates one client's settings from Java's names, or librdkafka's own, to librdkafka's."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_mirror.settings.java_names import DROPPED, RENAMED, role_of
from eos_mirror.settings.key_stores import take_keystore, take_truststore
from eos_mirror.settings.librdkafka import SETTINGS, Role
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.sections import misspelled
from eos_mirror.settings.security import Given, take_ciphers, take_sasl


@dataclass(slots=True, kw_only=True)
class Translation:
    """
    The result of a translation.

    Attributes:
        config: Settings by librdkafka's names; secrets included.
        notes: One line for each dropped setting.
        faults: One line for each setting that is not possible.
        intros: `file:line: full key` of every name that comes from exactly one line.
    """

    config: Masked = field(default_factory=Masked)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    intros: dict[str, str] = field(default_factory=dict)


def translate(given: Mapping[str, Given], role: Role) -> Translation:
    """
    Translate one client's settings. Never raises: the faults are in the result.

    Args:
        given: Settings by Java's or librdkafka's name, without prefixes.
        role: The kind of client. What it does not have is dropped, with a note.
    """
    out = Translation()
    pending = dict(given)
    for take in (take_truststore, take_keystore, take_ciphers, take_sasl):
        take(pending, out.config, out.faults.append)
    for name, setting in pending.items():
        if name in DROPPED:
            out.notes.append(f"{setting.intro}: no effect: librdkafka has no such setting")
        else:
            _rename(name, setting, role, out)
    return out


def _rename(name: str, setting: Given, role: Role, out: Translation) -> None:
    renamed, convert = RENAMED.get(name, (name, str))
    known, needed = SETTINGS.get(renamed), role_of(name)
    if known is None or needed is None:
        _report_unknown(name, setting, out)
        return
    if needed not in {Role.ANY, role}:
        out.notes.append(f"{setting.intro}: no effect: only a {needed.value} has this setting")
        return
    try:
        value = convert(setting.value)
        out.config[renamed] = known.fitted(value)
    except ValueError as exc:
        out.faults.append(f"{setting.intro}: {exc}")
        return
    out.intros[renamed] = setting.intro
    if known.low is not None and out.config[renamed] != value:
        out.notes.append(
            f"{setting.intro}: {out.config[renamed]} is used, because {renamed} of librdkafka is "
            f"{known.low} to {known.high}"
        )


def _report_unknown(name: str, setting: Given, out: Translation) -> None:
    meant = misspelled(name, sorted({*SETTINGS, *RENAMED, *DROPPED}))
    if meant:
        out.faults.append(f"{setting.intro}: unknown client setting; did you mean '{meant}'?")
    else:
        out.notes.append(f"{setting.intro}: no effect: no Kafka client has this setting")
