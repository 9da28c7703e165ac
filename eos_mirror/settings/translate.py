"""Translates one client's settings from Java's names, or librdkafka's own, to librdkafka's."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eos_mirror.settings.java_names import DROPPED, RENAMED
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.security import (
    Given,
    take_ciphers,
    take_keystore,
    take_sasl,
    take_truststore,
)


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


def translate(given: Mapping[str, Given]) -> Translation:
    """
    Translate one client's settings. Never raises: the faults are in the result.

    Args:
        given: Settings by Java's or librdkafka's name, without prefixes.
    """
    out = Translation()
    pending = dict(given)
    for take in (take_truststore, take_keystore, take_ciphers, take_sasl):
        take(pending, out.config, out.faults.append)
    for name, setting in pending.items():
        if name in DROPPED:
            out.notes.append(f"{setting.intro}: dropped, librdkafka has no such setting")
        else:
            _rename(name, setting, out)
    return out


def _rename(name: str, setting: Given, out: Translation) -> None:
    renamed, convert = RENAMED.get(name, (name, str))
    try:
        out.config[renamed] = convert(setting.value)
    except ValueError:
        out.faults.append(f"{setting.intro}: expected a whole number")
    out.intros[renamed] = setting.intro
