"""
What Kafka needs to run here: a Java, the jars, and two files derived from them.

The derived files are made once per Java and jar set. An archive of loaded classes halves the
start time of every JVM. The other is the bootstrap checkpoint that Kafka's own formatter writes.
"""

import hashlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.jars import cache_folder, ensure_jars, locked_jars
from eos_mirror.testing.java import find_java, java_major, java_version
from eos_mirror.testing.locks import locked
from eos_mirror.testing.processes import run, spawn
from eos_mirror.testing.releases import Release, chosen_release
from eos_mirror.testing.tcp_ports import PortLease
from eos_mirror.testing.training import train

log = logging.getLogger(__name__)

AOT_CACHE_JAVA = 25
"""Since this version the ahead-of-time cache replaces the class archive (JEP 514)."""
JVM_WARNINGS_TO_STDERR = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""By default they go to stdout, into the output of Kafka's tools."""
ARCHIVE_TIMEOUT_S = 120.0
FORMAT_TIMEOUT_S = 60.0
NOT_USED = 9093
"""A port for the formatter, which requires one and does not use it."""

LOG4J2 = """\
rootLogger.level={level}
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.target={stream}
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
"""

LOG4J1 = """\
log4j.rootLogger={level}, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.Target={stream}
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
STREAMS_OF_LOG4J1 = {"SYSTEM_OUT": "System.out", "SYSTEM_ERR": "System.err"}

TRAINING = "2"
"""Version of what a broker does while its archive is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """
    A Java and Kafka's jars.

    Attributes:
        cache: Folder of the derived files.
        key: Identifies this pair of Java and jar set.
    """

    release: Release
    java: Path
    java_major: int
    jars: Path
    cache: Path
    key: str

    @property
    def classpath(self) -> str:
        """Return the jars in a fixed order, which the class archive depends on."""
        return os.pathsep.join(str(self.jars / jar.name) for jar in locked_jars(self.release))

    def command(self, main_class: str, *arguments: str, flags: Sequence[str] = ()) -> list[str]:
        """Return the command line that runs one of Kafka's classes."""
        return [
            str(self.java),
            *flags,
            "-XX:-UsePerfData",
            "-cp",
            self.classpath,
            main_class,
            *arguments,
        ]

    def fast_flags(self) -> list[str]:
        """Return flags for short-lived JVMs: one compiler tier, and the class archive if any."""
        flags = ["-XX:TieredStopAtLevel=1", *JVM_WARNINGS_TO_STDERR]
        archive = class_archive(self)
        if archive is None:
            return flags
        if self.java_major >= AOT_CACHE_JAVA:
            return [*flags, f"-XX:AOTCache={archive}"]
        return [*flags, "-Xshare:auto", f"-XX:SharedArchiveFile={archive}"]


def find_installation(release: Release | None = None) -> Installation:
    """
    Return Java and jars of this machine; the first time, fetch the jars.

    Args:
        release: None: the one that EOS_MIRROR_TEST_KAFKA names.

    Raises:
        NotInstalled: There is no Java, or there are no jars and no way to fetch them.
        ConfigError: EOS_MIRROR_TEST_KAFKA names no release.
    """
    release = release or chosen_release()
    java, cache = find_java(), cache_folder()
    jars = ensure_jars(release, java, cache=cache)
    text = "\n".join(
        [TRAINING, java_version(java), str(jars), *(jar.sha256 for jar in locked_jars(release))]
    )
    return Installation(
        release=release,
        java=java,
        java_major=java_major(java),
        jars=jars,
        cache=cache,
        key=f"{release.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}",
    )


def logging_flag(installation: Installation, *, level: str, stream: str) -> str:
    """Return the flag of a JVM that logs to one stream at one level; write its configuration."""
    if installation.release.log4j2:
        name, flag = "log4j2", "-Dlog4j2.configurationFile="
        text = LOG4J2.format(level=level, stream=stream)
    else:
        name, flag = "log4j1", "-Dlog4j.configuration=file:"
        text = LOG4J1.format(level=level, stream=STREAMS_OF_LOG4J1[stream])
    path = installation.cache / f"{name}-{level}-{stream}.properties".lower()
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        replace_text(path, text)
    return f"{flag}{path}"


def replace_text(path: Path, text: str) -> None:
    """Write a file atomically: no reader ever sees half of it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)


def bootstrap_checkpoint(installation: Installation, features: Mapping[str, int]) -> Path:
    """
    Return what Kafka's formatter puts into an empty log folder: metadata version and features.

    Args:
        features: Levels that differ from the defaults, such as `{"transaction.version": 1}`.

    Raises:
        ClusterFailed: The formatter refused, for instance because of an unknown feature.
    """
    levels = [f"{name}={level}" for name, level in sorted(features.items())]
    key = "-".join([installation.release.version, *levels])
    path = installation.cache / f"bootstrap-{key}.checkpoint"
    if path.is_file():
        return path
    with locked(installation.cache / ".bootstrap"):
        if not path.is_file():
            _save_checkpoint(installation, levels, path)
    return path


def class_archive(installation: Installation) -> Path | None:
    """
    Return the archive of classes that a broker loads; the first time, make it by running one.

    Returns:
        None if this Java cannot make one. Brokers then start a little slower.
    """
    path = installation.cache / f"classes-{installation.key}.jsa"
    if not path.exists():
        with locked(installation.cache / ".archive"):
            if not path.exists():
                log.info("preparing %s for fast starts, once", installation.release)
                _save_archive(installation, path)
    return path if path.stat().st_size else None


def _save_checkpoint(installation: Installation, levels: Sequence[str], path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _format_node(installation, Path(folder), levels)
        partial = path.with_suffix(".partial")
        shutil.copyfile(Path(folder) / "data" / installation.release.checkpoint, partial)
        partial.replace(path)


def _save_archive(installation: Installation, path: Path) -> None:
    """Make the archive; leave an empty file if that is impossible, so that it is not retried."""
    partial = path.with_suffix(".partial")
    ahead_of_time = installation.java_major >= AOT_CACHE_JAVA
    flags = [
        "-XX:TieredStopAtLevel=1",
        f"-XX:{'AOTCacheOutput' if ahead_of_time else 'ArchiveClassesAtExit'}={partial}",
        logging_flag(installation, level="INFO", stream="SYSTEM_OUT"),
    ]
    lease = PortLease()
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = _format_node(installation, Path(folder), [], controller_port=lease.port)
            broker = installation.command("kafka.Kafka", str(config), flags=flags)
            _run_once(broker, Path(folder) / "log")
    finally:
        lease.release()
    partial.touch()
    partial.replace(path)


def _format_node(
    installation: Installation,
    folder: Path,
    levels: Sequence[str],
    *,
    controller_port: int = NOT_USED,
) -> Path:
    """Format a single node; return its configuration. The system picks the port for clients."""
    config = folder / "server.properties"
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{controller_port}",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")
    options = ["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(config)]
    for level in levels:
        options += ["--feature", level]
    done = run(
        installation.command("kafka.tools.StorageTool", "format", *options),
        timeout_s=FORMAT_TIMEOUT_S,
    )
    if done.returncode:
        raise ClusterFailed(f"Kafka's formatter refused: {(done.stdout + done.stderr).strip()}")
    return config


def _run_once(command: Sequence[str], log_file: Path) -> None:
    """Start a broker, wait until it is ready, use it, stop it with SIGTERM."""
    with log_file.open("wb") as output, spawn(command, stdout=output) as broker:
        deadline = time.monotonic() + ARCHIVE_TIMEOUT_S
        while b"Kafka Server started" not in log_file.read_bytes():
            if time.monotonic() > deadline:
                break
            try:
                broker.wait(timeout=0.05)
                break
            except subprocess.TimeoutExpired:
                continue
        else:
            train(log_file)
        broker.send_signal(signal.SIGTERM)
        try:
            broker.wait(timeout=ARCHIVE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            broker.kill()
