"""
Reads Connect's `transforms` and `predicates` of a flow.

`transforms = a, b` lists transforms in order; `transforms.a.type` is the class of one, and the
other keys that begin with `transforms.a.` are its settings. Predicates are written in the same way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.flow import Flow
from eos_mirror.core.handlers import ARGUMENTS, HandlerSpec
from eos_mirror.core.regex_router import RegexRouter, replacement_parts
from eos_mirror.core.transforms import (
    DROP_HEADERS,
    FILTER,
    HAS_HEADER,
    INSERT_HEADER,
    TOMBSTONE,
    TOPIC_MATCHES,
    Predicate,
    Transform,
)
from eos_mirror.settings.filters import FilterSettings, Transforms
from eos_mirror.settings.patterns import as_java_reads
from eos_mirror.settings.properties import Property
from eos_mirror.settings.resolve import Resolver
from eos_mirror.settings.values import split_list

TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
FAMILIES: Final = (f"{TRANSFORMS}.", f"{PREDICATES}.")
ROUTER: Final = "RegexRouter"

_TRANSFORM_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_PREDICATE_PACKAGE: Final = "org.apache.kafka.connect.transforms.predicates."
_TRANSFORMS: Final[Mapping[str, tuple[str, ...]]] = {
    FILTER: (),
    INSERT_HEADER: ("header", "value.literal"),
    DROP_HEADERS: ("headers",),
    ROUTER: ("regex", "replacement"),
}
_PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    TOMBSTONE: (),
    HAS_HEADER: ("name",),
    TOPIC_MATCHES: ("pattern",),
}
"""Class to its settings; each of them is required."""

_CONDITION: Final = ("predicate", "negate")
_ONE_COPY: Final = "a topic has one copy, whatever its records are"
_ELSEWHERE: Final[Mapping[str, str]] = {"TimestampRouter": _ONE_COPY}


def transforms_of(
    flow: Flow, filters: FilterSettings, owners: Sequence[str], resolver: Resolver
) -> Transforms:
    """
    Read the transforms of a flow. What is wrong is reported, and missing in the answer.

    Args:
        owners: Prefixes of the keys, strongest first.
    """
    names, predicates = filters.transforms, filters.predicates
    listed = {TRANSFORMS: names, PREDICATES: predicates}
    _note_unlisted(listed, owners[0], resolver)
    texts: dict[str, str] = {}

    def part(family: str, name: str) -> _Part:
        return _Part(family, name, owners, resolver, texts)

    conditions = {name: _predicate(part(PREDICATES, name)) for name in predicates}
    found = {name: _transform(part(TRANSFORMS, name), conditions) for name in names}
    routers = [name for name, one in found.items() if isinstance(one, RegexRouter)]
    for name in names[: names.index(routers[-1])] if routers else ():
        if _sees_the_topic(found[name]):
            what = f"list {name} after {routers[-1]} in transforms; its pattern sees the new name"
            part(TRANSFORMS, name).fault("predicate", what)
    return Transforms(
        chain=tuple(one for one in found.values() if isinstance(one, Transform)),
        routers=tuple(one for one in found.values() if isinstance(one, RegexRouter)),
        texts=texts,
        handler=_handler(flow, filters),
    )


def _handler(flow: Flow, filters: FilterSettings) -> HandlerSpec | None:
    if not filters.handler:
        return None
    config = {
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
        ARGUMENTS: filters.handler_args,
    }
    return HandlerSpec(path=filters.handler, config=tuple(config.items()))


def _sees_the_topic(one: Transform | RegexRouter | None) -> bool:
    """Return whether a transform of records depends on the name of the remote topic."""
    predicate = one.predicate if isinstance(one, Transform) else None
    return predicate is not None and predicate.kind == TOPIC_MATCHES


@dataclass(frozen=True, slots=True)
class _Part:
    """
    The lines of one transform or predicate.

    Attributes:
        texts: Gets the value of each line that is read.
    """

    family: str
    name: str
    owners: Sequence[str]
    resolver: Resolver
    texts: dict[str, str]

    def line(self, setting: str) -> Property | None:
        name = f"{self.family}.{self.name}.{setting}"
        line = self.resolver.line(name, self.owners)
        if line is not None:
            self.resolver.report.origins[self.owners[0] + name] = line.place
        return line

    def text(self, setting: str) -> str | None:
        """Return the value of a required setting; None if it is missing or wrong."""
        line = self.line(setting)
        if line is not None:
            text = self.resolver.text(line)
            self.texts[f"{self.family}.{self.name}.{setting}"] = text or ""
            return text
        listing = self.resolver.line(self.family, self.owners)
        place = "" if listing is None else f"{listing.place}: {listing.key}: "
        key = f"{self.owners[0]}{self.family}.{self.name}.{setting}"
        self.resolver.report.fault(f"{place}{self.name} has no {setting}; add {key}")
        return None

    def fault(self, setting: str, what: str) -> None:
        """Report a fault of a line that exists."""
        line = self.line(setting)
        if line is not None:
            self.resolver.report.fault(f"{line.place}: {line.key} = {line.value.strip()}: {what}")

    def settings(
        self, package: str, known: Mapping[str, tuple[str, ...]], *others: str
    ) -> tuple[str, list[str]] | None:
        """Return the class and the values of its settings; None if something is wrong."""
        text = self.text("type")
        if text is None:
            return None
        kind = text.removeprefix(package)
        if kind not in known:
            hint = _ELSEWHERE.get(kind.partition("$")[0])
            fix = f"{hint}; remove it" if hint else f"use {', '.join(known)}, or remove it"
            self.fault("type", f"this class is not built in; {fix}")
            return None
        for line in self._unknown((*known[kind], *others, "type")):
            what = f"{kind} has no such setting; remove the line"
            self.resolver.report.fault(f"{line.place}: {line.key}: {what}")
        values = [self.text(one) for one in known[kind]]
        whole = [value for value in values if value is not None]
        return (kind, whole) if len(whole) == len(values) else None

    def _unknown(self, allowed: Sequence[str]) -> Iterator[Property]:
        for owner in self.owners:
            prefix = f"{owner}{self.family}.{self.name}."
            for key, line in self.resolver.lines.items():
                if key.startswith(prefix) and key.removeprefix(prefix) not in allowed:
                    yield line


def _predicate(part: _Part) -> Predicate | None:
    found = part.settings(_PREDICATE_PACKAGE, _PREDICATES)
    if found is None:
        return None
    kind, values = found
    if kind == TOPIC_MATCHES:
        try:
            as_java_reads(values[0])
        except ValueError as exc:
            part.fault("pattern", str(exc))
            return None
    return Predicate(kind=kind, text="".join(values))


def _transform(
    part: _Part, predicates: Mapping[str, Predicate | None]
) -> Transform | RegexRouter | None:
    found = part.settings(_TRANSFORM_PACKAGE, _TRANSFORMS, *_CONDITION)
    condition = _condition(part, predicates)
    if found is None or condition is None:
        return None
    kind, values = found
    if kind == ROUTER:
        return _router(part, values, condition)
    return Transform(
        kind=kind,
        headers=split_list(values[0]) if kind == DROP_HEADERS else tuple(values[:1]),
        value=values[1] if kind == INSERT_HEADER else "",
        predicate=condition[0],
        negated=condition[1],
    )


def _router(
    part: _Part, values: Sequence[str], condition: tuple[Predicate | None, bool]
) -> RegexRouter | None:
    (regex, replacement), (predicate, negated) = values, condition
    if predicate is not None and predicate.kind != TOPIC_MATCHES:
        part.fault("predicate", f"{_ONE_COPY}; a router may have {TOPIC_MATCHES} only")
        return None
    try:
        pattern = as_java_reads(regex)
    except ValueError as exc:
        part.fault("regex", str(exc))
        return None
    try:
        parts = replacement_parts(replacement, pattern.groups)
    except ValueError as exc:
        part.fault("replacement", str(exc))
        return None
    only = None if predicate is None else as_java_reads(predicate.text)
    return RegexRouter(pattern=pattern, parts=parts, only=only, negated=negated)


def _condition(
    part: _Part, predicates: Mapping[str, Predicate | None]
) -> tuple[Predicate | None, bool] | None:
    """Return when a transform applies; None if that is wrong."""
    negate = part.text("negate") if part.line("negate") else "false"
    if negate is None or negate.lower() not in {"true", "false"}:
        part.fault("negate", "expected true or false")
        return None
    negated = negate.lower() == "true"
    if part.line("predicate") is None:
        if negated:
            part.fault("negate", f"{part.name} has no predicate; remove the line")
        return None if negated else (None, False)
    name = part.text("predicate")
    if name is None:
        return None
    if name not in predicates:
        declared = f"predicates lists {', '.join(predicates)}" if predicates else "there are none"
        part.fault("predicate", f"there is no such predicate: {declared}")
        return None
    found = predicates[name]
    return None if found is None else (found, negated)


def _note_unlisted(listed: Mapping[str, Sequence[str]], owner: str, resolver: Resolver) -> None:
    """
    Add a note for each line of the flow about a transform or predicate that is not listed.

    A line for several flows is not noted: another flow may list it.
    """
    for key, line in resolver.lines.items():
        family, _, rest = key.removeprefix(owner).partition(".")
        name = rest.partition(".")[0]
        if key.startswith(owner) and family in listed and name and name not in listed[family]:
            what = f"no effect: {family} does not list {name}"
            resolver.report.note(f"{line.place}: {key}: {what}")
