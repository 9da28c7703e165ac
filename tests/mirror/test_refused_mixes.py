"""Random mixes of records that the target accepts and that it refuses, on real brokers."""

import random
from collections.abc import Sequence

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.refused_records import (
    DROPPING,
    WITHIN,
    Record,
    assert_no_process_ended,
    configure,
    offer,
    values,
)
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SMALL_BYTES = 1_000
"""The limit of the copies of kind `small`; records have up to half of it, or more than it."""


def mixed(dice: random.Random, kind: str, count: int) -> list[tuple[Record, bool]]:
    """Return records, each with whether the copy accepts it."""
    found: list[tuple[Record, bool]] = []
    for number in range(count):
        is_bad = kind != "sound" and dice.random() < 3 / count
        size = SMALL_BYTES * 2 if is_bad and kind == "small" else dice.randrange(SMALL_BYTES // 2)
        key = None if is_bad and kind == "compacted" else b"key"
        found.append(((key, b"%06d" % number + b"x" * size), not is_bad))
    return found


STRANGE = {"compacted": "cleanup.policy=compact", "small": f"max.message.bytes={SMALL_BYTES}"}
"""Configuration of the copy that refuses records, by kind of topic."""


@pytest.mark.parametrize("mode", ["exactly once", "at least once"])
@pytest.mark.parametrize("seed", range(10))
def test_a_random_mix_of_good_and_refused_records_over_several_topics(
    site: Site, seed: int, mode: str
) -> None:
    """Exactly once copies all records before the first refused one, at least once all good ones."""
    dice = random.Random(seed)
    kinds = [*STRANGE, dice.choice([*STRANGE, "sound"]), "sound"]
    mixes = {f"{site.topic}-{n}": mixed(dice, kind, dice.randrange(20, 400))
             for n, kind in enumerate(kinds)}  # fmt: skip
    for topic in mixes:
        site.source.create_topic(topic, 1)
    extra = {} if mode == "exactly once" else DROPPING
    with mirror(site.config(tasks_max=1, sync_topic_configs_enabled="false", **extra)) as running:
        running.wait_for("ready")
        for topic, kind in zip(mixes, kinds, strict=True):
            if kind in STRANGE and dice.random() < 0.7:
                configure(site.target, f"{site.flow.source}.{topic}", STRANGE[kind])
            else:
                mixes[topic] = [(record, True) for record, _ in mixes[topic]]
        for topic, mix in mixes.items():
            offer(site, topic, [record for record, _ in mix])
        for topic, mix in mixes.items():
            wait_for_copy(site, topic, mix, whole=mode == "at least once")
        is_good = mode == "at least once" or all(good for mix in mixes.values() for _, good in mix)
        assert running.stop() == (0 if is_good else 1), running.errors

    assert_no_process_ended(running)
    if mode == "exactly once":
        refusals = len(running.found("batch.refused"))
        others = len(running.found("commit.suspicious"))
        assert len(running.found("incarnation.started")) <= 1 + refusals + others


def wait_for_copy(
    site: Site, topic: str, mix: Sequence[tuple[Record, bool]], *, whole: bool
) -> None:
    """Wait until the copy has the records that it must have, and no others."""
    stop = next((i for i, (_, good) in enumerate(mix) if not good), len(mix))
    wanted = [value for (_, value), good in (mix if whole else mix[:stop]) if good]

    def copied() -> list[bytes | None]:
        found = values(site, topic)
        return list(dict.fromkeys(reversed(found)))[::-1] if whole else found

    wait_until(lambda: copied() == wanted, within=WITHIN, what=f"{len(wanted)} of {topic}")
