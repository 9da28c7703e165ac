"""
Resolves `${provider:path:key}` in values, as Kafka's config providers do.

Kafka leaves a token that it cannot resolve as it is. Here that is a fault, because a password that
reads `${env:PASSWORD}` is never what the user wants.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from eos_mirror.errors import ConfigError
from eos_mirror.settings.properties import Property, read_properties

TOKEN = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_CLASS = re.compile(r"config\.providers\.([^.]+)\.class")

FAMILY: Final = "config.providers"

Provider = Callable[[str, str], str]
"""Returns the value at a path (which may be empty) and a key; raises LookupError with a reason."""

Providers = Mapping[str, Provider]


class UnknownProviderError(ValueError):
    """A token of a declared provider whose class is not one of Kafka's; the text has its line."""


def providers_of(properties: Sequence[Property], environ: Mapping[str, str]) -> Providers:
    """
    Return the providers by name: `env`, `file` and `dir`, and those that the configuration names.

    Args:
        properties: `config.providers.NAME.class` gives a name to one of Kafka's three classes.
        environ: Variables of the environment.

    Source: KIP-297, KIP-421, KIP-887.
    """
    classes: dict[str, Provider] = {
        "EnvVarConfigProvider": partial(_from_environment, environ),
        "FileConfigProvider": _from_file,
        "DirectoryConfigProvider": _from_directory,
    }
    found = dict(zip(("env", "file", "dir"), classes.values(), strict=True))
    for line in properties:
        named = _CLASS.fullmatch(line.key)
        if named:
            name = line.value.strip().removeprefix("org.apache.kafka.common.config.provider.")
            found[named[1]] = classes.get(name) or partial(_unknown, line)
    return found


def expand(text: str, providers: Providers) -> str:
    """
    Replace every token once; the result is not expanded again.

    Raises:
        ValueError: A token cannot be resolved; the text has the token and the reason, no value.

    Source: KIP-297; Kafka's ConfigTransformer.
    """
    return TOKEN.sub(lambda token: _resolve(token, providers), text)


def _resolve(token: re.Match[str], providers: Providers) -> str:
    name, path, key = token.groups()
    provider = providers.get(name)
    if provider is None:
        raise ValueError(
            f"{token[0]}: no config provider '{name}'; there are {', '.join(sorted(providers))}. "
            f"{FAMILY}.{name}.class names the class of another one"
        )
    try:
        return provider(path or "", key)
    except LookupError as exc:
        raise ValueError(f"{token[0]}: {exc.args[0]}") from exc


def _unknown(line: Property, _path: str, _key: str) -> str:
    raise UnknownProviderError(
        f"{line.place}: {line.key} = {line.value.strip()}: this class cannot be loaded; there are "
        f"FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider"
    )


def _from_environment(environ: Mapping[str, str], _path: str, key: str) -> str:
    if key not in environ:
        raise LookupError(f"environment variable {key} is not set")
    return environ[key]


def _from_file(path: str, key: str) -> str:
    try:
        values = {p.key: p.value for p in read_properties(path)}
    except ConfigError as exc:
        raise LookupError(str(exc)) from exc
    if key not in values:
        raise LookupError(f"{path} has no key {key}")
    return values[key]


def _from_directory(path: str, key: str) -> str:
    if key != Path(key).name:
        raise LookupError("the key must be the name of a file in the directory")
    try:
        return (Path(path) / key).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise LookupError(f"{Path(path) / key} cannot be read") from exc
