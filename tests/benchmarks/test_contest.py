"""The contest: its configurations are complete, and its figures are computed round by round."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import measured
from benchmarks.cells import CELLS
from benchmarks.cells import QUICK as QUICK_CELLS
from benchmarks.contest import Contest, in_the_order_of, take_turns
from benchmarks.measures import Results
from benchmarks.page import document
from benchmarks.peers import CONFIGS, PEERS, Job, Peer, PeerFailedError
from benchmarks.peers import QUICK as QUICK_PEERS
from benchmarks.report import COPY, LEGENDS, columns_of, comparison, ratios, table
from eos_mirror.settings.connector import DataPath
from eos_mirror.settings.load import load_settings
from eos_mirror.testing import KafkaCluster


def one_round(rate: float, cpu_s: float) -> dict[str, Any]:
    """Return the figures of one round."""
    spent = {"mirror": cpu_s, "source": 0.1, "target": 0.2}
    return {
        "rate": rate,
        "tail_rate": rate * 2,
        "cpu_s": spent,
        "tail_cpu_s": spent,
        "first_s": 1.5,
        "rss_mb": 100.0,
        "per_transaction": 0.0,
    }


ROUNDS = {
    "eos": [one_round(400_000, 2.0), one_round(300_000, 2.2), one_round(200_000, 2.4)],
    "mm2": [one_round(200_000, 4.0), one_round(100_000, 4.4), one_round(200_000, 2.4)],
}


def test_a_row_has_the_median_and_the_range_of_its_rounds() -> None:
    """A row has the median and the range of the rounds, in the units of the title."""
    titles, _, eos, mm2 = table(ROUNDS)
    assert titles.count("|") == eos.count("|") == len(COPY) + 2
    assert "| eos | 300 (200-400) | 600 (400-800) | 2.20 (2.00-2.40)" in eos
    assert mm2.startswith("| mm2 | 200 (100-200)")


def test_a_ratio_is_taken_round_by_round() -> None:
    """A ratio is computed per round, because other load of the machine affects both peers."""
    _, _, row = ratios(ROUNDS)
    assert row.startswith("| mm2 | 2.00 (1.00-3.00) | 2.00 (1.00-3.00) | 0.50 (0.50-1.00)")


def test_peers_and_ways_take_turns_and_one_sees_how_far_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Peers take turns in a changing order, and the progress of a long run is printed."""
    rates = iter(range(8))
    ways = dict.fromkeys(("1 task", "2 tasks"), lambda _: one_round(next(rates), 2.0))
    found = take_turns(ways, [PEERS["eos"], PEERS["mm2"]], 2)
    assert {
        (way, peer): [one["rate"] for one in rounds]
        for way, by_peer in found.items()
        for peer, rounds in by_peer.items()
    } == {
        ("1 task", "eos"): [0, 6],
        ("1 task", "mm2"): [1, 4],
        ("2 tasks", "eos"): [3, 5],
        ("2 tasks", "mm2"): [2, 7],
    }
    told = capsys.readouterr().err.splitlines()
    assert told[3:5] == ["2 tasks: eos 1/2: rate 3.00", "1 task: mm2 2/2: rate 4.00"]


def test_each_comes_behind_each_other_once_in_as_many_rounds() -> None:
    """Over all rounds, each peer runs directly after each other peer once."""
    peers = "abcdef"
    rounds = [in_the_order_of(number, peers) for number in range(1, len(peers) + 1)]
    pairs = [pair for order in rounds for pair in pairwise(order)]
    assert sorted(pairs) == sorted(permutations(peers, 2))


def test_a_round_in_which_mirror_maker_fails_is_run_once_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A round in which MirrorMaker fails is repeated, and the page says so."""
    way = failing_first(1)
    found = take_turns({"100B": way}, [PEERS["mm2-eos"]], 1)
    assert [one["rate"] for one in found["100B"]["mm2-eos"]] == [1_000]
    assert "100B: mm2-eos failed, and runs once more: 5 of 9" in capsys.readouterr().err
    page = list(document("python -m benchmarks run", found, 1))
    assert page[-1] == "mm2-eos failed in 1 of 1 rounds, and ran once more."


@pytest.mark.parametrize(("name", "failures"), [("eos", 1), ("loop-eos", 1), ("mm2-eos", 2)])
def test_who_must_not_fail_or_fails_again_ends_the_run(name: str, failures: int) -> None:
    """A failure of our own peer, or a second one of MirrorMaker, ends the run."""
    way = failing_first(failures)
    with pytest.raises(PeerFailedError, match="5 of 9"):
        take_turns({"100B": way}, [PEERS[name]], 1)


def test_cells_that_were_complete_before_a_failure_are_kept(tmp_path: Path) -> None:
    """A failure in a later cell is exit code 1, and the earlier cells are still there."""

    def measure(*_: object) -> Iterator[Results]:
        yield {"100B": {"eos": [one_round(1_000, 2.0)]}}
        raise PeerFailedError("5 of 9, and no more")

    results: Results = {}
    contest = Contest(source=KafkaCluster(), target=KafkaCluster(), folder=tmp_path)

    assert measured(contest, Namespace(measure=measure), results) == 1
    assert results["100B"]["eos"][0]["rate"] == 1_000


def failing_first(times: int) -> Callable[[Peer], dict[str, Any]]:
    """Return a measurement that fails this many times before it returns figures."""
    failures = iter(range(times))

    def measure(_: Peer) -> dict[str, Any]:
        if next(failures, None) is not None:
            raise PeerFailedError("5 of 9, and no more")
        return one_round(1_000, 2.0)

    return measure


def test_what_a_peer_has_none_of_has_no_ratio() -> None:
    """A figure that a peer does not have, such as records per transaction, has no ratio."""
    _, _, row = ratios(ROUNDS)
    assert row.endswith("| nan (nan-nan) |")


def test_a_result_is_compared_with_an_older_one_where_both_have_figures() -> None:
    """Old and new medians are compared; cells and peers that only one result has are skipped."""
    old = {"100B": {"eos": [one_round(150_000, 1.1)]}, "1000B": {"mm2": [one_round(1, 1)]}}
    page = list(comparison(old, {"100B": ROUNDS, "1000B": {"eos": ROUNDS["eos"]}}))
    assert [line for line in page if line.startswith("##")] == ["## 100B, new / old"]
    assert page[-1].startswith("| eos | 2.00 | 2.00 | 2.00 | 2.00 | 1.00 |")


def test_every_measure_is_known_by_its_first_figure() -> None:
    """The first figure of a round determines the table of a result."""
    for columns in LEGENDS:
        name = columns[0].path[0]
        assert columns_of({"eos": [{name: 1.0}]}) is columns


def test_the_page_names_the_command_the_machine_and_every_cell() -> None:
    """The page names the command, the machine and every cell, so that a reader can repeat it."""
    page = "\n".join(document("python -m benchmarks run", {"100B": ROUNDS, "1000B": ROUNDS}, 3))
    assert page.startswith("`python -m benchmarks run`")
    assert "both brokers on the same cores. Median (range) of 3 rounds" in page
    assert page.count("| eos | 300 (200-400)") == 2


def test_a_quick_run_is_made_of_what_there_is() -> None:
    """The cells and peers of a quick run exist."""
    assert set(QUICK_CELLS) <= set(CELLS)
    assert set(QUICK_PEERS) <= set(PEERS)


@pytest.mark.parametrize("decoded", [False, True], ids=["plain", "decoded"])
@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("*.properties")))
def test_a_configuration_is_filled_in(tmp_path: Path, name: str, decoded: bool) -> None:
    """Every placeholder of a configuration is filled in, and ours load."""
    job = a_job(tmp_path, decoded=decoded)
    path = job.config(name, fragment="decoded.fragment", runtime="local", data_path="auto")
    assert "$" not in path.read_text()
    if not name.startswith("mm2"):
        (flow,) = load_settings(path).flows
        assert flow.exactly_once == (name == "eos.properties")
        assert flow.connector.data_path is DataPath.AUTO
        assert len(flow.transforms.chain) == decoded


@pytest.mark.parametrize("name", ["eos", "alo", "eos-client", "alo-client"])
def test_our_own_lane_and_the_client_library_are_peers(tmp_path: Path, name: str) -> None:
    """A peer with `-client` in its name uses the client library, the others our own lane."""
    (path,) = [Path(word) for word in PEERS[name].command(a_job(tmp_path)) if "p1" in word]
    (flow,) = load_settings(path).flows

    assert PEERS[name].own_lane == (not name.endswith("-client"))
    assert (flow.connector.data_path is DataPath.AUTO) == PEERS[name].own_lane


def test_a_job_over_tls_has_the_settings_of_each_side(tmp_path: Path) -> None:
    """Each cluster has its own keys, in the names of Java clients; a bare loop refuses."""
    job = a_job(tmp_path, source_login={"ssl.key": "s"}, target_login={"ssl.key": "t"})

    (path,) = [Path(word) for word in PEERS["mm2-eos"].command(job) if "p1" in word]

    assert {"p1.ssl.key = s", "target.ssl.key = t"} <= set(path.read_text().splitlines())
    with pytest.raises(ValueError, match="no encryption"):
        PEERS["loop-eos"].command(job)


def a_job(folder: Path, **more: Any) -> Job:
    """Return a job of one topic."""
    return Job(source="a:9092", target="b:9092", topic="t", alias="p1", folder=folder, **more)
