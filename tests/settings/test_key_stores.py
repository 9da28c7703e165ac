"""Key stores and trust stores of Java are read; librdkafka gets their content in memory."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from eos_mirror.settings import FlowSettings, source_admin
from eos_mirror.settings.key_stores import parsed
from tests.settings.conftest import NOWHERE, Faults, Load, construct

OPEN = ("-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE",)
"""The certificates of a trust store are not encrypted."""
NO_MAC = (*OPEN, "-J-Dkeystore.pkcs12.macAlgorithm=NONE")
LEGACY = ("-J-Dkeystore.pkcs12.legacy",)
"""The ciphers of Java 8. OpenSSL 3 does not load them by default."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Return a folder of key stores k*.* and trust stores t*.*, all with the password hunter2.

    The key in k2.jks has the password hunter3. The authority `ca` has signed the keys; it and
    `other` are in the trust stores.
    """
    folder = tmp_path_factory.mktemp("stores")

    def run(*words: str, store: str) -> None:
        kind = ("-storetype", "JKS" if store.endswith("jks") else "PKCS12", "-noprompt")
        command = ("keytool", *words, "-keystore", store, *kind, "-storepass", "hunter2")
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)

    def copy(source: str, target: str, *options: str) -> None:
        words = ("-importkeystore", "-srckeystore", source, "-srcstorepass", "hunter2", *options)
        kind = "JKS" if target.endswith("jks") else "PKCS12"
        target_words = ("-destkeystore", target, "-deststoretype", kind, "-noprompt")
        command = ("keytool", *words, *target_words, "-deststorepass", "hunter2")
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)

    for name in ("ca", "other", "k"):
        pair = ("-genkeypair", "-keyalg", "EC", "-alias", name, "-dname", f"CN={name}")
        run(*pair, "-ext", "bc=ca:true", store=f"{name}.p12")
    for name in ("ca", "other"):
        run("-exportcert", "-rfc", "-alias", name, "-file", f"{name}.pem", store=f"{name}.p12")
        run("-importcert", "-alias", name, "-file", f"{name}.pem", store="t.p12")
    run("-certreq", "-alias", "k", "-file", "k.csr", store="k.p12")
    signed = ("-infile", "k.csr", "-outfile", "k.pem")
    run("-gencert", "-rfc", "-alias", "ca", *signed, store="ca.p12")
    chain = [(folder / name).read_text() for name in ("k.pem", "ca.pem")]
    (folder / "chain.pem").write_text("".join(chain))
    run("-importcert", "-alias", "k", "-file", "chain.pem", store="k.p12")
    copy("k.p12", "k_java8.p12", *LEGACY)
    copy("k.p12", "k.jks")
    copy("k.p12", "k2.jks", "-srcalias", "k", "-destkeypass", "hunter3")
    copy("t.p12", "t.jks")
    copy("t.p12", "t_open.p12", *OPEN)
    copy("t.p12", "t_no_mac.p12", *NO_MAC)
    copy("other.p12", "t_empty.jks")
    run("-delete", "-alias", "other", store="t_empty.jks")
    return folder


def certificates(text: str) -> set[bytes]:
    """Return the certificates in a PEM text as DER."""
    end = "-----END CERTIFICATE-----"
    blocks = text.split(end)[:-1]
    return {ssl.PEM_cert_to_DER_cert(one[one.index("-----BEGIN") :] + end) for one in blocks}


def flow_of(load: Load, lines: str) -> FlowSettings:
    (flow,) = load(f"security.protocol = SSL\n{lines}", base=NOWHERE).flows
    return flow


@pytest.fixture
def library(request: pytest.FixtureRequest) -> None:
    """Skip a test of PKCS12 where the extra is not installed."""
    if request.node.callspec.params["name"].endswith("p12"):
        pytest.importorskip("cryptography")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("t.jks", "ssl.truststore.password = hunter2"),
        ("t.jks", ""),
        ("t.jks", "ssl.truststore.password ="),
        ("t.jks", "ssl.truststore.type = PKCS12"),
        ("t.p12", "ssl.truststore.password = hunter2"),
        ("t.p12", "ssl.truststore.password = hunter2\nssl.truststore.type = pkcs12"),
        ("t_open.p12", ""),
        ("t_no_mac.p12", "ssl.truststore.password = anything"),
        ("t_no_mac.p12", ""),
    ],
)
def test_a_trust_store_is_read_as_java_reads_it(
    load: Load, stores: Path, name: str, more: str
) -> None:
    """Content decides, not the type. A password is needed only for what is encrypted."""
    flow = flow_of(load, f"ssl.truststore.location = {stores / name}\n{more}\n")

    expected = certificates((stores / "ca.pem").read_text() + (stores / "other.pem").read_text())
    assert certificates(source_admin(flow)["ssl.ca.pem"]) == expected
    construct(flow)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("k.jks", ""),
        ("k.jks", "ssl.keystore.type = PKCS12"),
        ("k2.jks", "ssl.key.password = hunter3"),
        ("k.p12", ""),
        ("k.p12", "ssl.keystore.type = PKCS12\nssl.key.password = hunter2"),
        ("k_java8.p12", ""),
    ],
)
def test_a_key_store_is_read_as_java_reads_it(
    load: Load, stores: Path, name: str, more: str
) -> None:
    """The key fits its certificate, which comes with its authority's; no file is named."""
    flow = flow_of(
        load,
        f"ssl.keystore.location = {stores / name}\nssl.keystore.password = hunter2\n{more}\n",
    )

    config = source_admin(flow)
    assert config["ssl.certificate.pem"].startswith(first_of(stores / "chain.pem"))
    expected = certificates((stores / "chain.pem").read_text())
    assert certificates(config["ssl.certificate.pem"]) == expected
    assert str(stores) not in str(dict(config))
    assert "BEGIN PRIVATE KEY" in config["ssl.key.pem"]
    assert "PRIVATE KEY" not in repr(config)
    construct(flow)


def first_of(path: Path) -> str:
    """Return the first certificate of a file, as librdkafka gets it."""
    text = path.read_text().partition("-----END")[0] + "-----END CERTIFICATE-----"
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(text))


@pytest.mark.parametrize(
    ("key", "name", "more", "fault"),
    [
        ("truststore", "missing", "", "f:5: A.ssl.truststore.location: missing cannot be read: "
         "No such file or directory; correct the path"),
        ("truststore", "t.jks", "A.ssl.truststore.password = secret",
         "f:6: A.ssl.truststore.password: is not the password of t.jks; correct it"),
        ("truststore", "t.p12", "A.ssl.truststore.password = secret",
         "f:6: A.ssl.truststore.password: is not the password of t.p12; correct it"),
        ("truststore", "t.p12", "",
         "f:5: A.ssl.truststore.location: t.p12 needs a password; set ssl.truststore.password"),
        ("truststore", "t_empty.jks", "", "f:5: A.ssl.truststore.location: t_empty.jks has no "
         "certificates; run 'keytool -importcert -keystore t_empty.jks -file ca.pem'"),
        ("truststore", "ca.pem", "", "f:5: A.ssl.truststore.location: ca.pem: "
         "is a PEM file; set the type of this store to PEM"),
        ("truststore", "f", "", "f:5: A.ssl.truststore.location: f: "
         "is neither a JKS nor a PKCS12 store; name another file"),
        ("truststore", "half.jks", "", "f:5: A.ssl.truststore.location: half.jks: "
         "the file is incomplete; name another file"),
        ("keystore", "k.jks", "", "f:5: A.ssl.keystore.location: "
         "needs ssl.keystore.password, too"),
        ("keystore", "k.jks", "A.ssl.keystore.password = secret",
         "f:6: A.ssl.keystore.password: is not the password of k.jks; correct it"),
        ("keystore", "k2.jks", "A.ssl.keystore.password = hunter2",
         "f:6: A.ssl.keystore.password: is not the password of the key in k2.jks; "
         "set ssl.key.password"),
        ("keystore", "k2.jks", "A.ssl.keystore.password = hunter2\nA.ssl.key.password = secret",
         "f:7: A.ssl.key.password: is not the password of the key in k2.jks; "
         "set ssl.key.password"),
        ("keystore", "t.jks", "A.ssl.keystore.password = hunter2",
         "f:5: A.ssl.keystore.location: t.jks has no private key; name the store into which "
         "'keytool -genkeypair' or 'keytool -importkeystore' has put one"),
        ("keystore", "t.p12", "A.ssl.keystore.password = hunter2",
         "f:5: A.ssl.keystore.location: t.p12 has no private key; name the store into which "
         "'keytool -genkeypair' or 'keytool -importkeystore' has put one"),
    ],
)  # fmt: skip
def test_a_store_that_cannot_be_used_is_one_line(
    faults: Faults, stores: Path, key: str, name: str, more: str, fault: str
) -> None:
    """The line names the setting to correct, and no password."""
    if name.endswith("p12"):
        pytest.importorskip("cryptography")
    for store in stores.iterdir():
        Path(store.name).write_bytes(store.read_bytes())
    Path("half.jks").write_bytes((stores / "t.jks").read_bytes()[:200])

    assert faults(f"A.ssl.{key}.location = {name}\n{more}\n") == [fault]


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the library of the extra fail to import, and forget what it has read."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    parsed.cache_clear()


@pytest.mark.usefixtures("without_library")
def test_without_the_library_a_trust_store_names_the_extra(faults: Faults, stores: Path) -> None:
    """JKS needs no library; PKCS12 needs the extra."""
    assert faults(f"A.ssl.truststore.location = {stores / 't.p12'}\n") == [
        f"f:5: A.ssl.truststore.location: {stores / 't.p12'}: a PKCS12 store needs a library; "
        "run pip install 'eos-mirror[pkcs12]'"
    ]


@pytest.mark.usefixtures("without_library")
def test_without_the_library_a_key_store_is_left_to_librdkafka(load: Load, stores: Path) -> None:
    """librdkafka reads PKCS12 key stores itself."""
    flow = flow_of(
        load, f"ssl.keystore.location = {stores / 'k.p12'}\nssl.keystore.password = hunter2\n"
    )

    assert source_admin(flow)["ssl.keystore.location"] == str(stores / "k.p12")
    construct(flow)
