"""The unit of systemd."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Final

from eos_mirror.errors import ConfigError, MirrorError, UnsafeError
from tests.delivery.files import CONFIG, longest_stop, run_tool

UNIT: Final = CONFIG / "systemd" / "eos-mirror@.service"
PROGRAM: Final = "/opt/eos-mirror/bin/eos-mirror"


def setting(name: str) -> str:
    """Return the value of a setting that the unit has once."""
    found = re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(found) == 1, f"{name}: {found}"
    return str(found[0])


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """systemd knows every setting of the unit, and accepts every value."""
    unit = tmp_path / "eos-mirror@a-to-b.service"
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true"))

    assert run_tool("systemd-analyze", "verify", unit) == ""


def test_a_start_that_is_refused_as_unsafe_is_not_repeated() -> None:
    """Only someone can cure exit code 4; a restart can cure the other codes."""
    assert setting("Restart") == "on-failure"
    assert setting("RestartPreventExitStatus") == str(UnsafeError.exit_code)
    assert UnsafeError.exit_code not in {0, ConfigError.exit_code, MirrorError.exit_code}
    assert setting("StartLimitIntervalSec") == "0", "a long outage at the start ends the retries"


def test_a_stop_may_take_as_long_as_it_can() -> None:
    """Only the driver gets SIGTERM, and systemd kills it only after it has given up waiting."""
    assert setting("KillMode") == "mixed"
    assert timedelta(seconds=int(setting("TimeoutStopSec"))) > longest_stop()


def test_a_reload_sends_the_signal_that_reloads() -> None:
    """SIGHUP makes a run read its configuration."""
    assert setting("ExecReload") == "/bin/kill -HUP $MAINPID"


def test_each_instance_has_its_own_files() -> None:
    """The name of an instance is the name of its configuration."""
    assert setting("ExecStart") == f"{PROGRAM} run /etc/eos-mirror/%i.properties"
    assert setting("EnvironmentFile") == "-/etc/eos-mirror/%i.env"
    assert setting("AssertPathExists") == "/etc/eos-mirror/%i.properties"


def test_the_user_of_the_unit_is_the_one_that_is_created() -> None:
    """systemd-sysusers creates the user that the unit names."""
    users = (CONFIG / "systemd" / "eos-mirror.sysusers.conf").read_text(encoding="utf-8")

    assert f"\nu {setting('User')} - " in users
