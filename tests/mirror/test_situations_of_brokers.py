"""As test_situations.py, where the disk or the certificate of a broker is the cause."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.cluster import installation
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.tls import make_keys
from tests.mirror.conftest import make_site
from tests.mirror.situation_stage import SEEN_BY_THE_RUN, WELL, Seen, away, staged
from tests.mirror.surgery import halted, log_of, produce_values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long, pytest.mark.usefixtures("own_brokers")]

DISK_SIZE = "64m"
DIRECTORY_ID = "c2Vjb25kLWRpcmVjdG9yeQ"
"""Of a second log directory, in Kafka's form of a UUID."""

MORE_THAN_A_PAGE = [b"%01000d" % i for i in range(100)]
"""Values that need space: on a full disk, the last page of a file still has some for a few."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system in memory; skips where tests may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.CalledProcessError) as exc:
        pytest.skip(f"tests may not mount a file system here: {getattr(exc, 'stderr', exc)}")
    try:
        yield folder
    finally:
        command = ["umount", str(folder)]
        subprocess.run(command, check=True, timeout=30)


def fill(disk: Path) -> Path:
    """Write a file that takes the rest of the space, and return it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4_096))
    return ballast


def set_log_directories(cluster: KafkaCluster, *folders: Path) -> None:
    """Change the configuration of a halted broker."""
    properties = cluster.data().with_name("server.properties")
    line = f"log.dirs={','.join(map(str, folders))}"
    properties.write_text(re.sub("^log.dirs=.*", line, properties.read_text(), flags=re.MULTILINE))


def add_log_directory(cluster: KafkaCluster, disk: Path, moved: Path) -> None:
    """Give a halted broker a second log directory, and move a partition there."""
    meta = (cluster.data() / "meta.properties").read_text()
    meta = re.sub("directory.id=.*", f"directory.id={DIRECTORY_ID}", meta)
    (disk / "meta.properties").write_text(meta)
    shutil.move(moved, disk / moved.name)
    set_log_directories(cluster, cluster.data(), disk)


def test_one_of_two_log_directories_of_the_target_is_full(
    tmp_path: Path, source_cluster: Cluster, disk: Path
) -> None:
    """The broker answers, but its partitions there have no leader until it is restarted."""
    with KafkaCluster(name="disks") as cluster:
        site = make_site(tmp_path, source_cluster, cluster, partitions=1)
        config = site.config(**SEEN_BY_THE_RUN)
        with mirror(config, "--once") as once:  # the internal topics are on the other disk
            assert once.wait() == 0, once.errors
        with halted(cluster):
            add_log_directory(cluster, disk, log_of(cluster, site.remote))
        with staged(site, config) as stage:
            ballast = fill(disk)
            produce_values(source_cluster, site.topic, MORE_THAN_A_PAGE)
            stage.shows(
                Seen(
                    state="waiting",
                    partition="waiting",
                    words=f"{site.remote}-0 has no leader",
                    event="partition.waiting",
                    fields={"partition": f"{site.topic}-0"},
                    is_ready=False,
                )
            )
            ballast.unlink()
            with halted(cluster):
                pass
            site.wait_caught_up()
            stage.shows(WELL)
        assert site.compare().exact


def test_the_only_log_directory_of_the_target_is_full(
    tmp_path: Path, source_cluster: Cluster, disk: Path
) -> None:
    """The broker exits: the cluster does not answer until it is started again."""
    with KafkaCluster(name="disk") as cluster:
        site = make_site(tmp_path, source_cluster, cluster, partitions=1)
        with halted(cluster):
            shutil.copytree(cluster.data(), disk, dirs_exist_ok=True)
            set_log_directories(cluster, disk)
        with staged(site, site.config(**SEEN_BY_THE_RUN)) as stage:
            ballast = fill(disk)
            produce_values(source_cluster, site.topic, MORE_THAN_A_PAGE)
            stage.shows(away(site.flow.target, "Connection refused"))
            ballast.unlink()
            cluster.start_node(1)  # raises if the broker has not exited
            stage.running.wait_for("cluster.recovered", cluster=site.flow.target)
            site.wait_caught_up()
            stage.shows(WELL)
        assert site.compare().exact


def test_a_certificate_is_of_another_authority(tmp_path: Path, source_cluster: Cluster) -> None:
    """The reason is the certificate, also where the broker did not listen at first."""
    with KafkaCluster(name="sealed", security=Security.TLS) as cluster:
        site = make_site(tmp_path, source_cluster, cluster)
        config = site.config(**SEEN_BY_THE_RUN)
        with config.open("a") as file:
            for key, value in cluster.java_properties().items():
                if key != "bootstrap.servers":
                    file.write(f"{site.flow.target}.{key} = {value}\n")
        clients = Path(cluster.client_config()["ssl.keystore.location"])
        used, own = clients.with_name("brokers.p12"), tmp_path / "own.p12"
        shutil.copyfile(used, own)
        other = make_keys(installation().java, tmp_path).brokers
        with staged(site, config) as stage:
            with halted(cluster):
                shutil.copyfile(other, used)
                stage.running.wait_for("cluster.unreachable", cluster=site.flow.target)
            stage.shows(away(site.flow.target, "certificate verify failed"))
            with halted(cluster):
                shutil.copyfile(own, used)
            stage.running.wait_for("cluster.recovered", cluster=site.flow.target)
            site.produce(10)
            site.wait_caught_up()
            stage.shows(WELL)
        assert site.compare().exact
