"""The completion script of each shell."""

import shutil
import subprocess

import pytest

from eos_mirror.cli.completion import SHELLS
from eos_mirror.cli.main import VERBS, main


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_verbs_and_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the shell is installed, it accepts the script."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out

    assert all(verb in script for verb in VERBS)
    assert "value-bytes" in script
    program = shutil.which(shell)
    if program is not None and shell != "tcsh":
        done = subprocess.run(
            [program, "-n"], input=script, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
