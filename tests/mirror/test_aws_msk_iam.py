"""Clusters with IAM of Amazon MSK: tokens of AWS's signer log in with OAUTHBEARER."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, Security
from tests.mirror.command_line import CONFIGURATION, refused
from tests.mirror.conftest import Site, make_site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

SIGNER = """
import base64, json, time

def part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

def generate_auth_token(region):
    with open({calls!r}, "a") as calls:
        print(region, file=calls)
    if {broken!r}:
        raise ValueError("the role is gone")
    now = int(time.time())
    claims = {{"sub": "admin", "iat": now, "exp": now + 900}}
    return part({{"alg": "none"}}) + "." + part(claims) + ".", (now + 900) * 1000
"""
"""Signs what a broker of Kafka accepts for a test; only MSK accepts the signature of AWS."""

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
REGION = "eu-north-1"


@pytest.fixture(scope="module")
def bearers(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one. Clients may log in with a token without a signature."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    config = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.client.oauthbearer.sasl.jaas.config": f"{module} required;",
    }
    with KafkaCluster(name="bearers", security=Security.SASL_PLAIN, broker_config=config) as own:
        yield own


def config_of(site: Site, **extra: object) -> Path:
    """Write a configuration whose clients log in as those of Amazon MSK do."""
    config = site.config(**extra)
    with config.open("a") as file:
        file.writelines(f"{key} = {value}\n" for key, value in LOGIN.items())
    return config


def signer(folder: Path, *, broken: bool = False) -> Mapping[str, str]:
    """Return the environment of a mirror that finds this signer instead of AWS's."""
    package = folder / "aws_msk_iam_sasl_signer"
    package.mkdir()
    (package / "__init__.py").touch()
    code = SIGNER.format(calls=str(folder / "calls"), broken=broken)
    (package / "MSKAuthTokenProvider.py").write_text(code)
    return {"PYTHONPATH": str(folder), "AWS_REGION": REGION}


@pytest.mark.long
def test_every_client_logs_in_with_a_token_of_the_signer(
    tmp_path: Path, bearers: KafkaCluster
) -> None:
    """Records, heartbeats and groups are mirrored, in the driver and in the task."""
    site = make_site(tmp_path, bearers, bearers)
    site.produce(200)
    config = config_of(site, emit_checkpoints_enabled="true", emit_heartbeats_enabled="true")
    with mirror(config, env=signer(tmp_path)) as running:
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    assert running.errors == []
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 200
    assert set((tmp_path / "calls").read_text().split()) == {REGION}


def test_a_signer_that_fails_is_said_in_a_line(tmp_path: Path, bearers: KafkaCluster) -> None:
    """One line for each cluster. Nothing waits for a token that does not come."""
    site = make_site(tmp_path, bearers, bearers)
    says = ["no login to cluster", f"{bearers.bootstrap}: ", "no token: the role is gone"]
    env = signer(tmp_path, broken=True)
    running = refused(config_of(site), code=CONFIGURATION, says=says, lines_count=2, env=env)
    assert not running.found("task.started")
