"""
Resolves `${env:NAME}`, `${file:/path/to.properties:key}` and `${dir:/path:key}` in values.

These are Kafka's three built-in config providers, always on. An unresolved token is a fault. Kafka
keeps it as literal text, but a password that reads `${env:PASSWORD}` is never what the user wants.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from eos_mirror.errors import ConfigError
from eos_mirror.settings.properties import read_properties

_TOKEN = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


def expand(text: str, environ: Mapping[str, str]) -> str:
    """
    Replace every token once; the result is not expanded again.

    Raises:
        ValueError: A token cannot be resolved; the text has the token and the reason, no value.

    Source: KIP-297, KIP-421, KIP-887; Kafka's ConfigTransformer.
    """
    return _TOKEN.sub(lambda token: _resolve(token, environ), text)


def _resolve(token: re.Match[str], environ: Mapping[str, str]) -> str:
    provider, path, key = token.groups()
    try:
        match provider:
            case "env":
                return _from_environment(key, environ)
            case "file":
                return _from_file(path or "", key)
            case "dir":
                return _from_directory(path or "", key)
    except LookupError as exc:
        raise ValueError(f"{token[0]}: {exc.args[0]}") from exc
    raise ValueError(f"{token[0]}: no config provider '{provider}'; there are env, file and dir")


def _from_environment(key: str, environ: Mapping[str, str]) -> str:
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
