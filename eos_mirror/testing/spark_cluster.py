"""
Runs a standalone Spark cluster here: a master and its workers, from the installed PySpark.

The package does not export this module, because importing it loads pyspark.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pyspark

from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.java import find_java, java_home
from eos_mirror.testing.processes import spawn
from eos_mirror.testing.tcp_ports import PortLease
from eos_mirror.testing.waiting import wait_until

LOOPBACK = "127.0.0.1"
PACKAGE = "org.apache.spark.deploy"
REGISTERED = "Successfully registered with master"
STARTED_WITHIN = timedelta(seconds=60)
PAGE = re.compile(r"'MasterUI' on port (\d+)")


@contextmanager
def spark_cluster(
    folder: Path, *, cores: int = 2, memory: str = "2g", workers: int = 1
) -> Iterator[str]:
    """
    Run the cluster for the length of the block.

    Neither master nor worker outlives this process, however it exits. An executor exits when it
    has lost its worker.

    Args:
        folder: For the log, `spark.log`, and the working folders of executors.
        cores: Cores of each worker, shared by all its executors.
        memory: Memory of each worker, in Spark's notation.
        workers: Number of workers. At least one runs when the block begins.

    Returns:
        The address, for `spark.master`. Set `spark.driver.host` to LOOPBACK.

    Raises:
        NotInstalled: This machine has no Java.
        ClusterFailed: A process exited, or no worker started in time; carries its log.
    """
    lease = PortLease()
    address = f"spark://{LOOPBACK}:{lease.port}"
    common = ("--host", LOOPBACK, "--webui-port", "0")
    worker = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder), address)
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(_start(folder, "master.Master", *common, "--port", str(lease.port)))
        started += [_start(folder, "worker.Worker", *common, *worker) for _ in range(workers)]
        _wait_for_worker(folder / "spark.log", started)
        yield address
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()
        lease.release()


def master_page_port(folder: Path) -> int:
    """Return the port of the master's page, for `spark.master.ui.port`."""
    (port,) = PAGE.findall((folder / "spark.log").read_text())
    return int(port)


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a class as Spark's own scripts do."""
    home = Path(pyspark.__file__).parent
    environ = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    with (folder / "spark.log").open("ab") as log:
        return spawn(
            [str(home / "bin/spark-class"), f"{PACKAGE}.{name}", *arguments],
            environ=environ,
            stdout=log,
        )


def _wait_for_worker(log: Path, started: Sequence[subprocess.Popen[bytes]]) -> None:
    def is_decided() -> bool:
        return REGISTERED in log.read_text() or any(p.poll() is not None for p in started)

    try:
        wait_until(is_decided, within=STARTED_WITHIN, what="a Spark worker")
    except TimeoutError as exc:
        raise ClusterFailed(f"{exc}\n{log.read_text()}") from None
    if REGISTERED not in log.read_text():
        raise ClusterFailed(f"Spark exited during its start\n{log.read_text()}")
