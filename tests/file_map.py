"""
The file map of docs/architecture.md, from the first line of every module.

`python -m tests.file_map` writes it.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "eos_mirror"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- file map: begin -->", "<!-- file map: end -->"


def idea_of(module: Path) -> str:
    """Return the first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return paragraph.replace("|", "\\|")


def file_map() -> str:
    """Return a table for each part, with a row for every module except `__init__`."""
    lines: list[str] = []
    top = sorted(PACKAGE.glob("*.py"))
    parts = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
    for title, modules in [("", top), *((part.name, sorted(part.glob("*.py"))) for part in parts)]:
        lines += [f"### eos_mirror/{title}", "", "| file | idea |", "|---|---|"]
        for module in modules:
            if module.name != "__init__.py":
                name = module.relative_to(ROOT).as_posix()
                lines.append(f"| `{name}` | {idea_of(module)} |")
        lines.append("")
    return "\n".join(lines)


def written() -> str:
    """Return the file map that is on the page."""
    found = re.search(f"{BEGIN}\n(.*){END}", PAGE.read_text(), re.DOTALL)
    assert found is not None, "the page has no place for the file map"
    return found[1]


def main() -> None:
    """Write the page."""
    text = PAGE.read_text()
    PAGE.write_text(text.replace(f"{BEGIN}\n{written()}{END}", f"{BEGIN}\n{file_map()}{END}"))


if __name__ == "__main__":
    main()
