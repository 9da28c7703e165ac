"""Classes of the user, named in the configuration by their dotted paths."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from eos_mirror.errors import ConfigError

JAVA_PACKAGES = frozenset({"com", "org", "net", "io", "de", "uk", "fr", "nl", "eu", "dev"})
"""Beginnings of Java's packages. A Python module with such a name would have been found."""


def find_class(path: str) -> Callable[[Mapping[str, str]], Any]:
    """
    Import a class, or a callable that returns an object as a class does.

    Raises:
        ValueError: The message says what is wrong with it, and what to do.
    """
    module, dot, name = path.rpartition(".")
    if not dot:
        raise ValueError(f"'{path}' is neither a class of MirrorMaker 2 nor module.Class of Python")
    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as exc:
        if path.partition(".")[0] in JAVA_PACKAGES:
            raise ValueError("this is a Java class; only Python classes can be loaded") from exc
        raise ValueError(
            f"there is no module {exc.name}; install it, or put its folder on PYTHONPATH"
        ) from exc
    except AttributeError as exc:
        raise ValueError(f"module {module} has no {name}") from exc
    except Exception as exc:  # user code may raise anything
        raise ValueError(f"cannot import {module}: {type(exc).__name__}: {exc}") from exc
    if not callable(found):
        raise ValueError(f"{path} is not a class")  # noqa: TRY004 - a configured value is wrong
    made: Callable[[Mapping[str, str]], Any] = found
    return made


def make(path: str, config: Mapping[str, str], needs: Sequence[str]) -> Any:
    """
    Create an object of the class.

    Args:
        config: The only argument of the constructor.
        needs: Names of attributes that the object must have.

    Raises:
        ConfigError: The object cannot be created, or an attribute is missing.
    """
    try:
        made = find_class(path)(config)
    except Exception as exc:  # user code may raise anything
        raise ConfigError(f"{path} cannot be made: {type(exc).__name__}: {exc}") from exc
    missing = [name for name in needs if not hasattr(made, name)]
    if missing:
        raise ConfigError(f"{path} has no {', '.join(missing)}")
    return made
