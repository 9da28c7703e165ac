"""Copies of programs that are no MirrorMaker 2 are taken over: of a group, or by a file."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from eos_mirror.core.ledger import Kind
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.group_sync import SOON, commit
from tests.mirror.takeovers import ALL, COPIED, STORED, adopt, copy_some
from tests.mirror.toolbox import mirror
from tests.mirror.translation import everywhere

pytestmark = pytest.mark.brokers


def check_continued(site: Site, origin: str) -> None:
    """Assert that a takeover succeeds, and that the flow copies exactly the rest."""
    code, answer = adopt(site, "--quiet", "0.5", origin=origin)
    assert code == 0, answer
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == ALL
    entries = read_ledger(site.target.client_config(), site.flow)
    (entry,) = [one for one in entries if one.kind is Kind.MODE]
    assert entry.details["from"] == origin.replace(f"{site.folder}/", "")


def test_the_offsets_of_a_group_say_where_a_copy_is_at_least(site: Site) -> None:
    """As those of MirrorMaker 1, which had written more than it committed."""
    site.produce(ALL)
    copy_some(site)
    group = f"mm1-{site.topic}"
    commit(site.source, group, everywhere(site, STORED // site.partitions))
    code, answer = adopt(site, "--plan", origin=f"group:{group}")
    at = COPIED // site.partitions
    said = f"{site.topic}-0: continues at {at} (group {group} stored {STORED // site.partitions};"
    assert (code, said in answer) == (5, True), answer

    check_continued(site, f"group:{group}")


def test_a_group_with_members_is_refused(site: Site) -> None:
    """They would write into the copies."""
    site.produce(ALL)
    copy_some(site)
    group = f"mm1-{site.topic}"
    member = Consumer({**site.source.client_config(), "group.id": group})
    member.subscribe([site.topic])
    try:
        wait_until(
            lambda: member.poll(0.1) is not None or bool(member.assignment()),
            within=SOON,
            what="a member of the group",
        )
        code, answer = adopt(site, "--quiet", "0", origin=f"group:{group}")
    finally:
        member.close()
    assert (code, f"group {group} on {site.flow.source} has members" in answer) == (4, True), answer


def test_a_file_says_where_a_copy_is_at_least(site: Site) -> None:
    """Its owner wrote the positions of another program into it."""
    site.produce(ALL)
    copy_some(site)
    file = site.folder / "positions.json"
    at = {str(number): STORED // site.partitions for number in range(site.partitions)}
    file.write_text(json.dumps({site.topic: at}))

    check_continued(site, f"json:{file}")


@pytest.mark.parametrize("text", ["", "[1]", '{"orders": 1}', '{"orders": {"0": -1}}'])
def test_a_file_that_is_none_is_refused(site: Site, text: str) -> None:
    """One line names the file and its form."""
    file = site.folder / "positions.json"
    file.write_text(text)
    code, answer = adopt(site, origin=f"json:{file}")
    assert (code, answer.count("\n")) == (2, 1), answer
    assert f"{file}: not an object such as" in answer


def test_a_file_that_is_missing_is_refused(tmp_path: Path, site: Site) -> None:
    """As any other file."""
    code, answer = adopt(site, origin=f"json:{tmp_path}/none.json")
    assert (code, answer) == (2, f"eos-mirror: {tmp_path}/none.json: No such file or directory\n")
