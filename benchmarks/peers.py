"""The peers that copy: eos_mirror and MirrorMaker 2 in their modes, and bare loops."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from eos_mirror.testing.installation import find_installation, logging_flag
from eos_mirror.testing.processes import spawn

CONFIGS = Path(__file__).with_name("configs")
LOOP = "benchmarks.loop"
MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
HEAP = "-Xmx1g"
ADDED = ("benchmark", b"decoded")
"""The header that the transform of `configs/decoded*.fragment` adds to each record."""
OWN_LANE, CLIENT_LIBRARY = "auto", "client"
DATA_PATHS = (OWN_LANE, CLIENT_LIBRARY)
"""Values of `data.path`."""


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
        decoded: A transform adds `ADDED` to each record, so that no batch can be passed through.
        source_login, target_login: Further client settings, in the names of Java clients.
    """

    source: str
    target: str
    topic: str
    alias: str
    folder: Path
    codec: str = "none"
    tasks: int = 2
    interval_ms: int = 100
    linger_ms: int = 20
    decoded: bool = False
    source_login: Mapping[str, str] = field(default_factory=dict)
    target_login: Mapping[str, str] = field(default_factory=dict)

    @property
    def remote(self) -> str:
        """The name of the remote topic."""
        return f"{self.alias}.{self.topic}"

    @property
    def log(self) -> Path:
        """The log of the peer."""
        return self.folder / f"{self.alias}.log"

    def config(self, name: str, *, fragment: str, **more: object) -> Path:
        """
        Fill in a file of `configs/`, and return the path of the result.

        Args:
            fragment: The file of `configs/` that is added if records are decoded.
        """
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
        names = [name, *([fragment] if self.decoded else [])]
        text = "".join((CONFIGS / one).read_text() for one in names)
        path.write_text(Template(text).substitute(values) + self._logins())
        return path

    def _logins(self) -> str:
        sides = {self.alias: self.source_login, "target": self.target_login}
        return "".join(
            f"{alias}.{key} = {value}\n"
            for alias, login in sides.items()
            for key, value in login.items()
        )

    def require_plain(self, peer: str) -> None:
        """Refuse a job that a bare loop cannot do. Raises ValueError."""
        if self.decoded or self.source_login or self.target_login:
            raise ValueError(f"{peer} has no transforms and no encryption: choose other peers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """
    Attributes:
        command: What to run for a job.
        needs_topic: The remote topic must exist before the peer starts.
        may_fail: We cannot fix this peer: a round in which it fails is run once more.
        data_path: `data.path` of eos_mirror; None for every other program.
    """

    name: str
    command: Callable[[Job], list[str]]
    data_path: str | None = None
    needs_topic: bool = False
    may_fail: bool = False

    def start(self, job: Job) -> "subprocess.Popen[bytes]":
        """Start it; it dies with this process, and logs to a file beside its configuration."""
        with job.log.open("ab") as log:
            return spawn(self.command(job), stdout=log)

    @property
    def own_lane(self) -> bool:
        """Whether records take connections of our own, not those of the client library."""
        return self.data_path == OWN_LANE

    @property
    def is_mirror_maker(self) -> bool:
        """Whether it is MirrorMaker 2, in any mode."""
        return self.name.startswith("mm2")


def _ours(name: str, mode: str, *, data_path: str = OWN_LANE, runtime: str = "local") -> Peer:
    def command(job: Job) -> list[str]:
        path = job.config(
            f"{mode}.properties", fragment="decoded.fragment", runtime=runtime, data_path=data_path
        )
        return [sys.executable, "-m", "eos_mirror.cli.main", "run", str(path)]

    return Peer(name=name, command=command, data_path=data_path)


def _mirror_maker(name: str, config: str) -> Peer:
    def command(job: Job) -> list[str]:
        path = job.config(f"{config}.properties", fragment="decoded-mm2.fragment")
        return _java(MIRROR_MAKER, str(path))

    return Peer(name=name, command=command, may_fail=True)


def _java(main: str, *arguments: str) -> list[str]:
    installation = find_installation()
    logging = logging_flag(installation, level="WARN", stream="SYSTEM_ERR")
    flags = [HEAP, "-XX:+UseG1GC", logging]
    return installation.command(main, *arguments, flags=flags)


def _java_loop(job: Job) -> list[str]:
    """Return the command of the Java loop, which compiles when it starts."""
    job.require_plain("java-loop")
    where = job.source, job.target, job.topic, job.remote
    return _java(str(CONFIGS / "Loop.java"), *where, str(job.interval_ms), job.codec)


def _loop(mode: str) -> Peer:
    def command(job: Job) -> list[str]:
        job.require_plain(f"loop-{mode}")
        where = job.source, job.target, job.topic, job.remote
        return [sys.executable, "-m", LOOP, *where, mode, str(job.interval_ms), job.codec]

    return Peer(name=f"loop-{mode}", command=command, needs_topic=True)


PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        _ours("eos", "eos"),
        _ours("alo", "alo"),
        _ours("eos-client", "eos", data_path=CLIENT_LIBRARY),
        _ours("alo-client", "alo", data_path=CLIENT_LIBRARY),
        _ours("eos-spark", "eos", runtime="spark"),
        _ours("alo-spark", "alo", runtime="spark"),
        _mirror_maker("mm2", "mm2-defaults"),
        _mirror_maker("mm2-alo", "mm2-alo"),
        _mirror_maker("mm2-eos", "mm2-eos"),
        Peer(name="java-loop", command=_java_loop, needs_topic=True),
        _loop("eos"),
        _loop("alo"),
    )
}
QUICK = ("eos", "alo", "mm2-eos", "mm2-alo")
FULL = ("eos", "eos-client", "alo", "mm2-eos", "mm2-alo", "mm2", "loop-eos")
LANE = ("eos", "eos-client", "mm2-eos", "mm2-alo")
"""Our own lane, the client library, and MirrorMaker 2 in its tuned modes."""
