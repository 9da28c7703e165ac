"""The container image and the example with two clusters."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import pytest

from eos_mirror.cli.main import main
from eos_mirror.driver.exporters import exported
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.values import Address, Exporter
from eos_mirror.testing.releases import DEFAULT
from tests.delivery.files import CONFIG, ROOT, longest_stop, read_yaml

FOLDER: Final = CONFIG / "containers"
CONTAINERFILE: Final = (FOLDER / "Containerfile").read_text(encoding="utf-8")
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BROKERS: Final = ("source", "target")


@pytest.fixture
def services() -> dict[str, Any]:
    """The services of the compose file."""
    return dict(read_yaml(FOLDER / "compose.yaml")["services"])


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page with metrics, as a run serves it."""
    addresses: list[str] = []
    settings = MetricSettings(
        exporters=(Exporter.PROMETHEUS,), listener=Address("127.0.0.1", 0), partitions=True
    )
    with exported(settings, lambda address, *_: addresses.append(address)):
        yield addresses[0]


def ask(command: Sequence[str], address: str) -> int:
    """Run a probe with another address and this Python; return its exit code."""
    assert command[:2] == ["python", "-c"]
    code = command[2].replace("http://127.0.0.1:9464/metrics", address)
    assert address in code
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return done.returncode


def test_everything_that_the_image_copies_exists() -> None:
    """The build context is the root of the project."""
    lines = re.findall(r"^COPY (.+)$", CONTAINERFILE, re.MULTILINE)
    sources = [source for line in lines for source in line.split()[:-1]]

    assert "pyproject.toml" in sources
    assert PROJECT["readme"] in sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_image_installs_extras_of_the_project() -> None:
    """The extras, the program and the version of Python are those of pyproject.toml."""
    extras = re.search(r'pip install .*"\.\[([\w,-]+)\]"', CONTAINERFILE)
    program = re.search(r'^ENTRYPOINT \["(.+)"\]$', CONTAINERFILE, re.MULTILINE)
    python = re.search(r"^ARG PYTHON=(\S+)$", CONTAINERFILE, re.MULTILINE)

    assert extras
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert program
    assert program[1] in PROJECT["scripts"]
    assert python
    assert PROJECT["requires-python"] == f">={python[1]}"


def test_the_image_does_not_run_as_root() -> None:
    """The last user of the image is a number, so that Kubernetes can check it."""
    users = re.findall(r"^USER (.+)$", CONTAINERFILE, re.MULTILINE)

    assert users == ["10001:10001"]


def test_every_service_has_a_health_check(services: dict[str, Any]) -> None:
    """The mirror starts when both brokers answer, and is itself checked."""
    assert set(services) == {*BROKERS, "mirror"}
    assert all(service["healthcheck"]["test"][0] == "CMD" for service in services.values())
    waits_for = services["mirror"]["depends_on"]
    assert {name: one["condition"] for name, one in waits_for.items()} == dict.fromkeys(
        BROKERS, "service_healthy"
    )
    grace_s = int(services["mirror"]["stop_grace_period"].removesuffix("s"))
    assert timedelta(seconds=grace_s) > longest_stop()


def test_the_brokers_are_of_the_version_that_is_tested(services: dict[str, Any]) -> None:
    """The image of the brokers has the version of Kafka that the tests run against."""
    assert {services[name]["image"] for name in BROKERS} == {
        f"docker.io/apache/kafka:{DEFAULT.version}"
    }


def test_the_clusters_are_not_the_same(services: dict[str, Any]) -> None:
    """Each broker has its own cluster id and its own address."""
    environments = [services[name]["environment"] for name in BROKERS]

    assert len({one["CLUSTER_ID"] for one in environments}) == len(BROKERS)
    for name, one in zip(BROKERS, environments, strict=True):
        assert one["KAFKA_ADVERTISED_LISTENERS"] == f"CLIENT://{name}:9092"


def test_everything_that_the_mirror_mounts_exists(services: dict[str, Any]) -> None:
    """The compose file names files of this folder, and the image of this project."""
    mirror = services["mirror"]
    mounted = [volume.split(":")[0] for volume in mirror["volumes"]]
    context = (FOLDER / mirror["build"]["context"]).resolve()

    assert [name for name in mounted if not (FOLDER / name).is_file()] == []
    assert context == ROOT
    assert (context / mirror["build"]["dockerfile"]).is_file()


def test_the_mirrors_file_loads(capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration of the mirror is valid, and names the two brokers."""
    path = FOLDER / "mm2.properties"
    settings = load_settings(path)

    assert not settings.notes
    assert [c.bootstrap_servers for c in settings.clusters] == [
        (f"{name}:9092",) for name in BROKERS
    ]
    assert main(["config", "show", str(path)]) == 0
    assert "metrics.listener" in capsys.readouterr().out


def test_the_health_check_follows_the_page(services: dict[str, Any], page: str) -> None:
    """The check of the mirror succeeds if the page answers, and fails if nothing listens."""
    command = services["mirror"]["healthcheck"]["test"][1:]

    assert ask(command, page) == 0
    assert ask(command, "http://127.0.0.1:1/metrics") == 1
