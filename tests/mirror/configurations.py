"""Variants of a flow's configuration file."""

from pathlib import Path

from eos_mirror.testing import KafkaCluster
from tests.mirror.conftest import Site


def rewrite(config: Path, old: str, new: str) -> Path:
    """Replace a text that the file must contain."""
    text = config.read_text()
    assert old in text, f"{old!r} is not in {config}"
    config.write_text(text.replace(old, new))
    return config


def detour(config: Path, cluster: KafkaCluster) -> Path:
    """Write a copy of the configuration that reaches this cluster through its proxies."""
    path = config.with_stem(f"{config.stem}-detour")
    path.write_text(config.read_text().replace(cluster.bootstrap, cluster.proxied_bootstrap))
    return path


def config_for_three_brokers(site: Site, **extra: object) -> Path:
    """Write the site's configuration for a target of three brokers: replication factor 3."""
    return site.config(replication_factor=3, internal_topic_replication_factor=3, **extra)
