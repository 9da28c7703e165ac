"""The process around a verb exits with the right code, whatever its clients do."""

import importlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from eos_mirror.cli.main import EXAMPLES, VERBS, parser_of

PROGRAM = """
import atexit, sys, threading
from eos_mirror.cli import main as cli

class Client:
    def __del__(self):
        sys.stderr.write("destroyed\\n")
        threading.Event().wait()

def main():
    cli.client = Client()
    atexit.register(print, "flushed")
    sys.stdout.write("done, ")
    {ending}

cli.main = main
cli.program()
"""


@pytest.mark.parametrize(
    ("ending", "code", "says"),
    [
        ("return 3", 3, ""),
        ("raise OSError('what happened')", 1, "OSError: what happened"),
    ],
)
def test_a_client_that_cannot_be_destroyed_holds_nobody_up(
    ending: str, code: int, says: str
) -> None:
    """If a client blocks, the process still prints, runs its exit handlers and exits."""
    program = [sys.executable, "-c", PROGRAM.format(ending=ending)]

    done = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)

    assert (done.returncode, done.stdout) == (code, "done, flushed\n")
    assert says in done.stderr
    assert "destroyed" not in done.stderr


def test_a_reader_that_has_enough_gets_no_traceback(tmp_path: Path) -> None:
    """As with `eos-mirror config show FILE | head -1`."""
    config = tmp_path / "mm2.properties"
    lines = ("clusters = A, B", *(f"{alias}.bootstrap.servers = x:9092" for alias in "AB"))
    config.write_text("\n".join((*lines, "A->B.enabled = true\n")))
    command = [sys.executable, "-m", "eos_mirror.cli.main", "config", "show", str(config)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


def test_a_command_line_that_is_wrong_ends_with_its_own_code() -> None:
    """A wrong command line exits with code 2."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "sing"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 2
    assert "sing" in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_can_be_typed(verb: str) -> None:
    """Its options exist, and the help shows it."""
    parser = parser_of({verb: importlib.import_module(f"eos_mirror.cli.{verb}")})
    program, *arguments = shlex.split(EXAMPLES[verb].partition(" > ")[0])

    assert program == "eos-mirror"
    assert parser.parse_args(arguments).verb == verb
