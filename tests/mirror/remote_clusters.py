"""The same questions about one cluster, asked with Kafka's own client and with ours."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from eos_mirror.client import RemoteClusterUtils
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.installation import find_installation

ORACLE = Path(__file__).with_name("RemoteClusters.java")
WITHIN = timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """
    What both clients are asked.

    Attributes:
        aliases: Clusters whose number of hops is asked for.
        translated: Clusters whose checkpoints are read. Their checkpoint topics must exist.
        groups: Groups whose offsets the checkpoints translate.
    """

    aliases: Sequence[str]
    translated: Sequence[str]
    groups: Sequence[str]

    def to_java(self, cluster: Cluster, settings: Mapping[str, str]) -> list[str]:
        """Return the answers of Kafka's client, a line for each question."""
        lists = (",".join(names) for names in (self.aliases, self.translated, self.groups))
        words = [word for item in settings.items() for word in item]
        command = find_installation().command(
            *(str(ORACLE), cluster.bootstrap, *lists, *words),
            flags=["-XX:TieredStopAtLevel=1"],
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if ": " in line]

    def to_us(self, cluster: Cluster, settings: Mapping[str, str]) -> list[str]:
        """Return the answers of our client, printed as Java prints them."""
        config = {**cluster.client_config(), **settings}
        utils = RemoteClusterUtils

        def names(found: set[str]) -> str:
            return f"[{', '.join(sorted(found))}]"

        lines = [
            f"heartbeats: {names(utils.heartbeat_topics(config))}",
            f"checkpoints: {names(utils.checkpoint_topics(config))}",
            f"upstream: {names(utils.upstream_clusters(config))}",
        ]
        lines += [
            f"hops {alias}: {utils.replication_hops(config, alias)}" for alias in self.aliases
        ]
        for alias in self.translated:
            for group in self.groups:
                offsets = utils.translate_offsets(config, alias, group, timeout=WITHIN)
                printed = sorted(f"{p}={at.offset}/{at.metadata}" for p, at in offsets.items())
                lines.append(f"offsets {alias} {group}: {{{', '.join(printed)}}}")
        return lines
