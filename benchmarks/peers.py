"""The peers that copy: eos_mirror and MirrorMaker 2 in their modes, and bare loops."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from eos_mirror.testing.installation import find_installation, log4j_config
from eos_mirror.testing.processes import spawn

CONFIGS = Path(__file__).with_name("configs")
LOOP = "benchmarks.loop"
MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
HEAP = "-Xmx1g"


class PeerFailedError(RuntimeError):
    """A peer exited, or made no more progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    One copy of one topic.

    Attributes:
        source, target: Bootstrap servers.
        alias: Name of the source cluster, new for each job: no peer resumes where another stopped.
        linger_ms: `linger.ms` of the producers of peers that do not choose it themselves.
    """

    source: str
    target: str
    topic: str
    alias: str
    codec: str
    folder: Path
    tasks: int = 2
    interval_ms: int = 100
    linger_ms: int = 20

    @property
    def remote(self) -> str:
        """The name of the remote topic."""
        return f"{self.alias}.{self.topic}"

    def config(self, name: str, **more: object) -> Path:
        """Fill in a file of `configs/`, and return the path of the result."""
        values = {
            "alias": self.alias,
            "source": self.source,
            "target": self.target,
            "topic": self.topic,
            "tasks": self.tasks,
            "interval_ms": self.interval_ms,
            "linger_ms": self.linger_ms,
            "codec": self.codec,
            **more,
        }
        path = self.folder / f"{self.alias}-{name}"
        path.write_text(Template((CONFIGS / name).read_text()).substitute(values))
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """
    Attributes:
        command: What to run for a job.
        needs_topic: The remote topic must exist before the peer starts.
        may_fail: We cannot fix this peer: a round in which it fails is run once more.
    """

    name: str
    command: Callable[[Job], list[str]]
    needs_topic: bool = False
    may_fail: bool = False

    def start(self, job: Job) -> "subprocess.Popen[bytes]":
        """Start it; it dies with this process, and logs to a file beside its configuration."""
        with (job.folder / f"{job.alias}.log").open("ab") as log:
            return spawn(self.command(job), stdout=log)


def _ours(name: str, runtime: str) -> Callable[[Job], list[str]]:
    return lambda job: [
        *(sys.executable, "-m", "eos_mirror.cli.main", "run"),
        str(job.config(name, runtime=runtime)),
    ]


def _mirror_maker(name: str) -> Callable[[Job], list[str]]:
    def command(job: Job) -> list[str]:
        return _java(MIRROR_MAKER, str(job.config(name)))

    return command


def _java(main: str, *arguments: str) -> list[str]:
    installation = find_installation()
    log4j = log4j_config(installation, level="WARN", stream="SYSTEM_ERR")
    flags = [HEAP, "-XX:+UseG1GC", f"-Dlog4j2.configurationFile={log4j}"]
    return installation.command(main, *arguments, flags=flags)


def _java_loop(job: Job) -> list[str]:
    """Return the command of the Java loop, which compiles when it starts."""
    where = job.source, job.target, job.topic, job.remote
    return _java(str(CONFIGS / "Loop.java"), *where, str(job.interval_ms), job.codec)


def _loop(mode: str) -> Callable[[Job], list[str]]:
    return lambda job: [
        *(sys.executable, "-m", LOOP, job.source, job.target, job.topic, job.remote),
        *(mode, str(job.interval_ms), job.codec),
    ]


PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(name="eos", command=_ours("eos.properties", "local")),
        Peer(name="alo", command=_ours("alo.properties", "local")),
        Peer(name="eos-spark", command=_ours("eos.properties", "spark")),
        Peer(name="alo-spark", command=_ours("alo.properties", "spark")),
        Peer(name="mm2", command=_mirror_maker("mm2-defaults.properties"), may_fail=True),
        Peer(name="mm2-alo", command=_mirror_maker("mm2-alo.properties"), may_fail=True),
        Peer(name="mm2-eos", command=_mirror_maker("mm2-eos.properties"), may_fail=True),
        Peer(name="java-loop", command=_java_loop, needs_topic=True),
        Peer(name="loop-eos", command=_loop("eos"), needs_topic=True),
        Peer(name="loop-alo", command=_loop("alo"), needs_topic=True),
    )
}
QUICK = ("eos", "alo", "mm2-eos", "mm2-alo")
FULL = ("eos", "alo", "mm2-eos", "mm2-alo", "mm2", "loop-eos")
