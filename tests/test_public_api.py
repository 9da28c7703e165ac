"""The public names can be imported, and no others are promised."""

import importlib
import types
from pathlib import Path

import pytest

import eos_mirror
from eos_mirror.cli.main import main

PACKAGE = Path(eos_mirror.__file__).parent
WITH_ALL = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if "\n__all__ = " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", WITH_ALL)
def test_every_public_name_can_be_imported(name: str) -> None:
    """Every name in `__all__` exists and is listed once."""
    module = importlib.import_module(name)
    public: list[str] = module.__all__

    assert len(set(public)) == len(public)
    assert [entry for entry in public if not hasattr(module, entry)] == []


def test_the_testing_package_promises_what_it_offers() -> None:
    """`__all__` of `eos_mirror.testing` has every public name of the package."""
    testing = importlib.import_module("eos_mirror.testing")
    offered = {
        name
        for name, value in vars(testing).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }

    assert offered == set(testing.__all__)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the version of the package."""
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])

    assert capsys.readouterr().out == f"eos-mirror {eos_mirror.__version__}\n"
