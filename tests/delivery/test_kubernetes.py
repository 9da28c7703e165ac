"""The manifests for Kubernetes."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from eos_mirror.settings.load import load_settings
from tests.delivery.files import CONFIG, longest_stop, read_yaml

FOLDER: Final = CONFIG / "kubernetes"
MANIFESTS: Final = sorted(path.stem for path in FOLDER.glob("*.yaml"))
CREDENTIALS: Final = "/etc/eos-mirror-credentials"
OF_AN_OPERATOR: Final = "podmonitor"
"""A resource that Prometheus's operator adds; Kubernetes has no schema of it."""


def manifest(name: str) -> dict[str, Any]:
    """Return a manifest."""
    return dict(read_yaml(FOLDER / f"{name}.yaml"))


@pytest.fixture
def pod() -> dict[str, Any]:
    """The pod of the Deployment."""
    return dict(manifest("deployment")["spec"]["template"])


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    """The only container of the pod."""
    (only,) = pod["spec"]["containers"]
    return dict(only)


def test_the_manifests_are_those_that_the_page_names() -> None:
    """A new manifest is a row on the page."""
    page = (FOLDER.parents[1] / "docs" / "deployment.md").read_text(encoding="utf-8")
    named = re.findall(r"config/kubernetes/(\w+)\.yaml", page)

    assert sorted(set(named)) == MANIFESTS


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name != OF_AN_OPERATOR])
def test_a_manifest_has_the_form_that_kubernetes_accepts(name: str) -> None:
    """The schemas of the newest Kubernetes accept the manifest, and know all its fields."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )

    validate.validate(manifest(name), validate.latest_version(), strict=True)


def test_the_configuration_loads(tmp_path: Path) -> None:
    """The configuration reads its passwords from the keys of the Secret."""
    for key, value in manifest("secret")["stringData"].items():
        (tmp_path / key).write_text(value)
    text = manifest("configmap")["data"]["mm2.properties"]
    assert CREDENTIALS in text
    path = tmp_path / "mm2.properties"
    path.write_text(text.replace(CREDENTIALS, str(tmp_path)))

    settings = load_settings(path)

    assert not settings.notes
    assert settings.standby, "two runs of one configuration need it"


def test_the_container_finds_its_files(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """The volumes are the ConfigMap and the Secret, where the arguments and the file say."""
    sources = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    mounted = {one["mountPath"]: sources[one["name"]] for one in container["volumeMounts"]}
    (file,) = manifest("configmap")["data"]
    verb, path = container["args"]

    assert verb == "run"
    assert path == f"/etc/eos-mirror/{file}"
    configured = mounted["/etc/eos-mirror"]["configMap"]["name"]
    assert configured == manifest("configmap")["metadata"]["name"]
    secret = mounted[CREDENTIALS]["secret"]["secretName"]
    assert secret == manifest("secret")["metadata"]["name"]


def test_the_selectors_find_the_pods(pod: dict[str, Any]) -> None:
    """The Deployment, the budget and the monitor select the labels of the pod."""
    labels = pod["metadata"]["labels"]

    for name in ("deployment", "poddisruptionbudget", OF_AN_OPERATOR):
        assert manifest(name)["spec"]["selector"]["matchLabels"] == labels, name


def test_one_run_may_be_away(pod: dict[str, Any]) -> None:
    """An update starts a run before it stops one, and a drain leaves one."""
    spec = manifest("deployment")["spec"]

    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert manifest("poddisruptionbudget")["spec"]["minAvailable"] < spec["replicas"]
    grace = timedelta(seconds=pod["spec"]["terminationGracePeriodSeconds"])
    assert grace > longest_stop()


def test_the_page_of_the_metrics_is_scraped(container: dict[str, Any]) -> None:
    """The port of the configuration is that of the container and the monitor."""
    text = manifest("configmap")["data"]["mm2.properties"]
    (port,) = container["ports"]
    (endpoint,) = manifest(OF_AN_OPERATOR)["spec"]["podMetricsEndpoints"]

    assert f"metrics.listener = 0.0.0.0:{port['containerPort']}\n" in text
    assert endpoint["port"] == port["name"]


def test_the_probes_ask_the_http_server(container: dict[str, Any]) -> None:
    """A run that stands by is ready; the image has the packages of the server."""
    text = manifest("configmap")["data"]["mm2.properties"]
    image = (CONFIG / "containers" / "Containerfile").read_text(encoding="utf-8")
    paths = {"startupProbe": "/live", "livenessProbe": "/live", "readinessProbe": "/ready"}

    assert "listeners = http://127.0.0.1:8083\n" in text
    assert '".[metrics,rest]"' in image
    for probe, path in paths.items():
        command = container[probe]["exec"]["command"]
        assert f"'http://127.0.0.1:8083{path}'" in command[-1]


def test_the_container_may_do_little(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """The pod meets the restricted standard, and its user is that of the image."""
    image = (CONFIG / "containers" / "Containerfile").read_text(encoding="utf-8")
    of_pod, of_container = pod["spec"]["securityContext"], container["securityContext"]

    assert of_pod["runAsNonRoot"]
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"USER {of_pod['runAsUser']}:{of_pod['runAsGroup']}\n" in image
    assert of_container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
