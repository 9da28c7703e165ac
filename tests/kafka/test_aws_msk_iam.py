"""Tokens of AWS's own signer, made without a connection: it only needs keys."""

import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from eos_mirror.core.aws_msk_iam import MECHANISM, PROFILE
from eos_mirror.errors import LoginImpossible
from eos_mirror.kafka import aws_msk_iam
from eos_mirror.kafka.aws_msk_iam import with_login

SERVERS = "b-1.orders.x1y2z3.c2.kafka.eu-west-1.amazonaws.com:9098"
CONFIG = {"bootstrap.servers": SERVERS, "sasl.mechanism": MECHANISM}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Give the signer keys of its own, in the environment and in a profile; it asks no network."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    profile = tmp_path / "credentials"
    profile.write_text("[other]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = hunter2\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    for name in aws_msk_iam.REGION_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    aws_msk_iam.tokens_of.cache_clear()
    yield
    aws_msk_iam.tokens_of.cache_clear()


def signed(token: str) -> tuple[str, dict[str, list[str]]]:
    """Return the host and the fields of the address that a token is made of."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return url.netloc, parse_qs(url.query)


def test_the_signer_of_aws_makes_the_tokens() -> None:
    """The token is signed for the region in the brokers' names, and says when it expires."""
    config = with_login(CONFIG)
    token, expires_s = config["oauth_cb"]("")
    host, fields = signed(token)

    assert host == "kafka.eu-west-1.amazonaws.com"
    assert fields["Action"] == ["kafka-cluster:Connect"]
    assert fields["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
    assert 0 < expires_s - time.time() <= 900
    assert config["sasl.mechanism"] == "OAUTHBEARER"


def test_a_profile_signs_with_its_own_keys() -> None:
    """`awsProfileName` of the JAAS configuration; librdkafka does not see it."""
    config = with_login({**CONFIG, PROFILE: "other"})

    assert PROFILE not in config
    _, fields = signed(config["oauth_cb"]("")[0])
    # the environment's keys are stronger in AWS's library, except for a named profile
    assert fields["X-Amz-Credential"][0].startswith("AKIDOTHER/")


def test_clients_that_are_made_together_share_a_token() -> None:
    """A role is asked for once, not once for each client."""
    first = with_login(CONFIG)["oauth_cb"]("")
    assert with_login(CONFIG)["oauth_cb"]("") is first


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        ("region", "needs a region: bootstrap.servers names none, and AWS_REGION is not set"),
        ("keys", "no token: AWS's library finds no credentials"),
        ("signer", "needs the signer of AWS: pip install 'eos-mirror[aws-msk-iam]'"),
    ],
)
def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, lacks: str, says: str) -> None:
    """A client without a token would wait 10 s and not say why."""
    config = dict(CONFIG)
    if lacks == "region":
        config["bootstrap.servers"] = "localhost:9098"
    elif lacks == "keys":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    else:
        monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)

    with pytest.raises(LoginImpossible, match=f"^sasl.mechanism {MECHANISM}") as caught:
        with_login(config)
    assert says in str(caught.value)


def test_other_logins_are_left_as_they_are() -> None:
    """No signer is needed for them."""
    config = {"sasl.mechanism": "PLAIN", "sasl.username": "u"}
    assert with_login(config) == config
