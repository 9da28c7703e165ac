"""Connectors of MirrorMaker 2 as JSON of Kafka Connect, converted to an mm2.properties."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.errors import ConfigError
from eos_mirror.settings.connector_config import WITHOUT, Config, add_flow
from eos_mirror.settings.draft import Draft
from eos_mirror.settings.fields import Fields, fields_of

CLASS, SUFFIX = "connector.class", "Connector"
SOURCE_ALIAS, TARGET_ALIAS = "source.cluster.alias", "target.cluster.alias"
DEFAULT_TARGET = "target"
"""MirrorMaker 2's default of `target.cluster.alias`."""

OTHER = {
    "tasks": "the tasks of Kafka Connect",
    "type": "the kind of connector",
    "initial_state": "use eos-mirror stop or eos-mirror pause",
}
"""What Kafka Connect says about a connector besides its configuration."""


def convert_connectors(texts: Sequence[tuple[str, str]]) -> Draft:
    """
    Convert connectors: those of one pair of clusters become one flow.

    Args:
        texts: File and content. A content is a connector (`name` and `config`), the configuration
            of one, a list of these, or the answer to `GET /connectors?expand=info`.

    Raises:
        ConfigError: A file is no JSON, or no connector; says where and what to do.
    """
    draft = Draft(file=", ".join(file for file, _ in texts))
    flows: dict[Flow, dict[str, Config]] = {}
    paths: dict[Flow, list[str]] = {}
    for path, connector in _connectors(texts, draft):
        kind = _kind(connector)
        if kind not in WITHOUT:
            draft.refuse(path, "is no connector of MirrorMaker 2")
            continue
        source, target = connector.needed(SOURCE_ALIAS), connector.text(TARGET_ALIAS)
        flow = Flow(source.value, target.value if target else DEFAULT_TARGET)
        known = flows.setdefault(flow, {})
        if kind in known:
            draft.fault(path, f"{flow} has another {kind}; join the two, or convert one at a time")
        known[kind] = connector.entries()
        paths.setdefault(flow, []).append(path)
    if not flows:
        raise ConfigError(
            f"{draft.file}: has no connector of MirrorMaker 2; name a file with connector.class = "
            "org.apache.kafka.connect.mirror.MirrorSourceConnector"
        )
    for flow, connectors in flows.items():
        add_flow(flow, connectors, ", ".join(paths[flow]), draft)
    return draft


def _kind(connector: Fields) -> str:
    """Return the class of a connector without its package; Kafka Connect accepts a short name."""
    name = str(connector.content.get(CLASS, "")).rpartition(".")[2]
    return name if name.endswith(SUFFIX) else name + SUFFIX


def _connectors(texts: Sequence[tuple[str, str]], draft: Draft) -> Iterator[tuple[str, Fields]]:
    """Yield the path and the configuration of every connector."""
    for file, text in texts:
        try:
            content = json.loads(text)
        except json.JSONDecodeError as exc:
            place = f"{file}:{exc.lineno}:{exc.colno}"
            raise ConfigError(f"{place}: this is no JSON: {exc.msg}; correct it") from exc
        for at, one in enumerate(_items(content)):
            yield _connector(one, f"{file}[{at}]", draft)


def _items(content: Any) -> list[Any]:
    """Return the connectors of a list, or of an answer of Kafka Connect."""
    if isinstance(content, list):
        return content
    if isinstance(content, dict):
        answers = [one for one in content.values() if isinstance(one, dict) and "info" in one]
        if answers:
            return [one["info"] for one in answers]
    return [content]


def _connector(one: Any, place: str, draft: Draft) -> tuple[str, Fields]:
    fields = fields_of(one, place, draft)
    if CLASS in fields.content:  # the configuration alone
        name = str(fields.content.get("name") or place)
        return name, fields_of(fields.content, name, draft)
    named = fields.text("name")
    name = named.value if named else place
    config = fields_of(fields.take("config"), f"{name}.config", draft)
    fields.path = name
    fields.leave(OTHER)
    return name, config
