"""`eos-mirror brokers`: runs two Kafka clusters on this machine, to try things out."""

import argparse
import dataclasses
import json
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from eos_mirror.cli.signals import on_signals
from eos_mirror.errors import MirrorError
from eos_mirror.testing.cluster import KafkaCluster, start_clusters
from eos_mirror.testing.doctor import examine, usable_backend
from eos_mirror.testing.installation import find_installation
from eos_mirror.testing.processes import identity, is_running
from eos_mirror.testing.tools import run_script
from eos_mirror.testing.waiting import wait_until

DOWN_WITHIN = timedelta(seconds=30)
DONE, FAILED = 0, 1


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb and its actions to the command line."""
    parser = subparsers.add_parser("brokers", help="two Kafka clusters on this machine")
    actions = parser.add_subparsers(dest="action", required=True)
    up = actions.add_parser("up", help="start clusters A and B and run until Ctrl-C or `down`")
    up.add_argument("--nodes", type=_positive, default=1, help="brokers per cluster (default 1)")
    up.add_argument("--json", action="store_true", help="print the addresses as one JSON object")
    actions.add_parser("down", help="stop the clusters that `up` runs, and remove their data")
    tool = actions.add_parser("tool", help="run one of Kafka's command line tools")
    tool.add_argument("name", metavar="NAME", help="such as kafka-topics.sh")
    tool.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="of the tool")
    doctor = actions.add_parser("doctor", help="check what brokers need on this machine")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """
    Carry out one action.

    Returns:
        The exit code: 0 done, 1 failed. Errors of eos_mirror are printed on stderr.
    """
    try:
        if args.action == "up":
            return _up(args.nodes, as_json=args.json)
        if args.action == "down":
            return _down()
        if args.action == "tool":
            return _tool(args.name, args.arguments)
        return _doctor(as_json=args.json)
    except (MirrorError, TimeoutError) as exc:
        print(exc, file=sys.stderr)
        return exc.exit_code if isinstance(exc, MirrorError) else FAILED


def _up(nodes: int, *, as_json: bool) -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    owner = _owner_file()
    if is_running(_read(owner)):
        print("brokers are already up: run `eos-mirror brokers down` first", file=sys.stderr)
        return FAILED
    stop = threading.Event()
    on_signals(lambda _: stop.set(), signal.SIGINT, signal.SIGTERM)
    clusters = {name: KafkaCluster(nodes, name=name) for name in ("A", "B")}
    owner.write_text(identity(os.getpid()), encoding="utf-8")
    try:
        start_clusters(*clusters.values())
        addresses = {name: cluster.bootstrap for name, cluster in clusters.items()}
        lines = [f"{name}.bootstrap.servers={address}" for name, address in addresses.items()]
        print(json.dumps(addresses) if as_json else "\n".join([*lines, "ready"]), flush=True)
        stop.wait()
    finally:
        for cluster in clusters.values():
            cluster.stop()
        owner.unlink(missing_ok=True)
    return DONE


def _down() -> int:
    process = _read(_owner_file())
    if not is_running(process):
        print("no brokers are up", file=sys.stderr)
        return DONE
    with suppress(ProcessLookupError):
        os.kill(int(process.split()[0]), signal.SIGTERM)
    wait_until(lambda: not is_running(process), within=DOWN_WITHIN, what="the brokers' exit")
    return DONE


def _tool(name: str, arguments: Sequence[str]) -> int:
    """Run a tool on this terminal, and return its exit code."""
    on_signals(lambda _: None, signal.SIGINT)  # Ctrl-C is for the tool, which has it too
    try:
        return run_script(find_installation(), name, *arguments)
    except KeyError as exc:
        print(exc.args[0], file=sys.stderr)
        return FAILED


def _doctor(*, as_json: bool) -> int:
    findings = examine()
    backend = usable_backend(findings)
    if as_json:
        report = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"backend": backend, "findings": report}, indent=2))
    else:
        for finding in findings:
            mark = "ok" if finding.found else "not needed" if backend else "missing"
            print(f"{mark:10} {finding.name}: {finding.found or finding.problem}")
        print(f"tests and demo would use: {backend or 'nothing; install one of the above'}")
    return DONE if backend else FAILED


def _owner_file() -> Path:
    return Path(tempfile.gettempdir()) / f"eos-mirror-brokers-{os.getuid()}"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
