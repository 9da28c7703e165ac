"""Connect's `transforms` and `predicates` are read as a Connect worker reads them."""

import pytest

from eos_mirror.core.transforms import Predicate, Transform
from eos_mirror.errors import ConfigError
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.plugins import policy_of
from tests.settings.conftest import Load

SMT = "org.apache.kafka.connect.transforms."
TOMBSTONES = (
    "A->B.transforms = live\n"
    f"A->B.transforms.live.type = {SMT}Filter\n"
    "A->B.transforms.live.predicate = isTombstone\n"
    "A->B.predicates = isTombstone\n"
    f"A->B.predicates.isTombstone.type = {SMT}predicates.RecordIsTombstone\n"
)


def of(load: Load, text: str) -> tuple[Transform, ...]:
    """Return the transforms of the only flow."""
    (flow,) = load(text).flows
    return flow.transforms.chain


def test_without_the_keys_there_are_none(load: Load) -> None:
    """Neither of them has to be written."""
    assert of(load, "") == ()


def test_a_filter_has_its_predicate(load: Load) -> None:
    """This is how tombstones are left out."""
    tombstone = Predicate(kind="RecordIsTombstone")
    assert of(load, TOMBSTONES) == (Transform(kind="Filter", predicate=tombstone),)
    negated = f"{TOMBSTONES}A->B.transforms.live.negate = true\n"
    assert of(load, negated) == (Transform(kind="Filter", predicate=tombstone, negated=True),)


def test_transforms_keep_the_order_of_the_list(load: Load) -> None:
    """Their lines may stand in any order, and the class without its package."""
    text = (
        "transforms.drop.headers = a, b\ntransforms.drop.type = DropHeaders\n"
        "transforms = add, drop\ntransforms.add.type = InsertHeader\n"
        "transforms.add.header = from\ntransforms.add.value.literal = west\n"
        "transforms.add.predicate = p\npredicates = p\npredicates.p.type = TopicNameMatches\n"
        "predicates.p.pattern = A\\\\.or.*\n"
    )
    matches = Predicate(kind="TopicNameMatches", text=r"A\.or.*")
    assert of(load, text) == (
        Transform(kind="InsertHeader", headers=("from",), value="west", predicate=matches),
        Transform(kind="DropHeaders", headers=("a", "b")),
    )


def test_a_router_names_remote_topics(load: Load) -> None:
    """It sees the name that the policy gives, and so do the routers after it."""
    text = (
        f"transforms = strip, lake\ntransforms.strip.type = {SMT}RegexRouter\n"
        "transforms.strip.regex = A\\\\.(.*)\ntransforms.strip.replacement = $1\n"
        "transforms.lake.type = RegexRouter\ntransforms.lake.regex = (raw)-(.*)\n"
        "transforms.lake.replacement = lake.\\\\$2-$2\ntransforms.lake.predicate = isRaw\n"
        "predicates = isRaw\npredicates.isRaw.type = TopicNameMatches\n"
        "predicates.isRaw.pattern = raw.*\n"
    )
    (flow,) = load(text).flows
    policy = policy_of(flow)

    names = {one: policy.format_remote_topic("A", one) for one in ("orders", "raw-x", "heartbeats")}
    assert names == {"orders": "orders", "raw-x": "lake.$2-x", "heartbeats": "A.heartbeats"}
    assert flow.transforms.chain == ()
    (other,) = load(text.replace("replacement = $1", "replacement = x$1")).flows
    assert fingerprint(flow) != fingerprint(other)


def test_other_transforms_are_another_configuration(load: Load) -> None:
    """Tasks of both would write different copies."""
    one, other = (load(text).flows[0] for text in ("", TOMBSTONES))
    assert fingerprint(one) != fingerprint(other)


def test_a_line_of_a_transform_that_is_not_listed_is_noted(load: Load) -> None:
    """MirrorMaker 2 ignores it."""
    notes = load("A->B.transforms.old.type = Filter\ntransforms.wide.type = Filter\n").notes
    assert notes == ("f:5: A->B.transforms.old.type: no effect: transforms does not list old",)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("transforms = a", "f:5: transforms: a has no type; add A->B.transforms.a.type"),
        (f"transforms = a\ntransforms.a.type = {SMT}MaskField$Value",
         f"f:6: transforms.a.type = {SMT}MaskField$Value: this class is not built in; "
         "use Filter, InsertHeader, DropHeaders, RegexRouter, or remove it"),
        ("transforms = a\ntransforms.a.type = RegexRouter\ntransforms.a.regex = A\\\\.(.*)",
         "f:5: transforms: a has no replacement; add A->B.transforms.a.replacement"),
        ("transforms = a\ntransforms.a.type = RegexRouter\ntransforms.a.regex = (.*)\n"
         "transforms.a.replacement = $2", "f:8: transforms.a.replacement = $2: $2 is no group"),
        ("transforms = a\ntransforms.a.type = RegexRouter\ntransforms.a.regex = [\n"
         "transforms.a.replacement = x", "f:7: transforms.a.regex = [: '[' is not a regular"),
        ("transforms = a\ntransforms.a.type = RegexRouter\ntransforms.a.regex = .*\n"
         "transforms.a.replacement = x\ntransforms.a.predicate = p\npredicates = p\n"
         "predicates.p.type = RecordIsTombstone",
         "f:9: transforms.a.predicate = p: a topic has one copy, whatever its records are; "
         "a router may have TopicNameMatches only"),
        ("transforms = f, a\ntransforms.a.type = RegexRouter\ntransforms.a.regex = .*\n"
         "transforms.a.replacement = x\ntransforms.f.type = Filter\ntransforms.f.predicate = p\n"
         "predicates = p\npredicates.p.type = TopicNameMatches\npredicates.p.pattern = x",
         "f:10: transforms.f.predicate = p: list f after a in transforms; its pattern sees the"),
        (f"transforms = a\ntransforms.a.type = {SMT}TimestampRouter",
         f"f:6: transforms.a.type = {SMT}TimestampRouter: this class is not built in; "
         "a topic has one copy, whatever its records are; remove it"),
        ("transforms = a\ntransforms.a.type = DropHeaders",
         "f:5: transforms: a has no headers; add A->B.transforms.a.headers"),
        ("transforms = a\ntransforms.a.type = Filter\ntransforms.a.headers = x",
         "f:7: transforms.a.headers: Filter has no such setting; remove the line"),
        ("transforms = a\ntransforms.a.type = Filter\ntransforms.a.predicate = p",
         "f:7: transforms.a.predicate = p: there is no such predicate: there are none"),
        ("transforms = a\ntransforms.a.type = Filter\ntransforms.a.predicate = p\n"
         "predicates = q\npredicates.q.type = RecordIsTombstone",
         "f:7: transforms.a.predicate = p: there is no such predicate: predicates lists q"),
        ("transforms = a\ntransforms.a.type = Filter\ntransforms.a.negate = yes",
         "f:7: transforms.a.negate = yes: expected true or false"),
        ("transforms = a\ntransforms.a.type = Filter\ntransforms.a.negate = true",
         "f:7: transforms.a.negate = true: a has no predicate; remove the line"),
        ("predicates = p\npredicates.p.type = TopicNameMatches\npredicates.p.pattern = [",
         "f:7: predicates.p.pattern = [: '[' is not a regular expression"),
        ("predicates = p\npredicates.p.type = com.acme.P",
         "f:6: predicates.p.type = com.acme.P: this class is not built in; use RecordIsTombstone, "
         "HasHeaderKey, TopicNameMatches, or remove it"),
        ("transforms = a, a", "f:5: transforms = a, a: 'a' is empty or listed twice"),
        ("transforms = a.b", "f:5: transforms = a.b: 'a.b' has a dot; choose a name without one"),
    ],
)  # fmt: skip
def test_a_fault_names_its_line_and_the_fix(load: Load, text: str, fault: str) -> None:
    """A transform that is not built in is refused: without it, other records would be mirrored."""
    with pytest.raises(ConfigError) as caught:
        load(f"{text}\n")
    (line,) = caught.value.faults
    assert fault in line
