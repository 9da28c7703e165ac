"""Config providers, and the masking of secrets."""

import json
import pickle
from pathlib import Path

import pytest

from eos_mirror.settings import Masked, mask
from eos_mirror.settings.expand import expand, providers_of
from eos_mirror.settings.mask import HIDDEN


def test_each_provider_is_resolved(tmp_path: Path) -> None:
    """One text may use env, file and dir together; `${x}` is not a token."""
    (tmp_path / "s.properties").write_text("user = me\n", encoding="utf-8")
    (tmp_path / "pass").write_text("p4ss", encoding="utf-8")
    text = f"${{env:E}}-${{file:{tmp_path}/s.properties:user}}-${{dir:{tmp_path}:pass}}-${{x}}"

    assert expand(text, providers_of([], {"E": "e"})) == "e-me-p4ss-${x}"


def test_what_comes_out_is_not_expanded_again() -> None:
    """A resolved value that looks like a token is not expanded again."""
    assert expand("${env:A}", providers_of([], {"A": "${env:B}", "B": "b"})) == "${env:B}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("${env:NONE}", "${env:NONE}: environment variable NONE is not set"),
        ("${file:/none:a}", "${file:/none:a}: /none: cannot be read: No such file or directory"),
        ("${dir:/none:a}", "${dir:/none:a}: /none/a cannot be read"),
        (
            "${dir:/etc:../a}",
            "${dir:/etc:../a}: the key must be the name of a file in the directory",
        ),
        (
            "${vault:p:k}",
            "${vault:p:k}: no config provider 'vault'; there are dir, env, file. "
            "config.providers.vault.class names the class of another one",
        ),
    ],
)
def test_an_unresolved_token_says_why(text: str, fault: str) -> None:
    """A token that cannot be resolved is an error with the token and the reason."""
    with pytest.raises(ValueError, match=r"^\$") as caught:
        expand(text, providers_of([], {}))

    assert str(caught.value) == fault


def test_a_missing_key_of_a_file_is_named(tmp_path: Path) -> None:
    """The error names the missing key, but no other key or value of the file."""
    path = tmp_path / "s.properties"
    path.write_text("other = hunter2", encoding="utf-8")

    with pytest.raises(ValueError, match=r"has no key user$"):
        expand(f"${{file:{path}:user}}", providers_of([], {}))


@pytest.mark.parametrize(
    "key",
    [
        "sasl.jaas.config",
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.key.pem",
        "A.consumer.ssl.truststore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.ssl.keyPassword",
        "spark.authenticate.secret",
    ],
)
def test_secrets_are_masked(key: str) -> None:
    """Passwords, secrets, JAAS and keys are masked."""
    assert mask(key, "hunter2") == HIDDEN


@pytest.mark.parametrize(
    "key",
    ["sasl.username", "ssl.key.location", "sasl.oauthbearer.token.endpoint.url", "key.converter"],
)
def test_everything_else_is_shown(key: str) -> None:
    """Settings with similar names that are no secrets are shown."""
    assert mask(key, "x") == "x"


def test_a_masked_dict_hides_only_from_people() -> None:
    """repr, str and format mask the value; lookups, JSON and pickle keep it."""
    config = Masked({"sasl.password": "hunter2", "client.id": "c"})

    assert "hunter2" not in f"{config} {config!r} {config!s}"
    assert config["sasl.password"] == "hunter2"
    assert json.loads(json.dumps(config)) == config
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 (our own bytes)
