"""Which connector a flow is, in the sense of KIP-656, and how records travel."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator

from eos_mirror.settings.filters import HandlerClass
from eos_mirror.settings.key import Key
from eos_mirror.settings.values import Text, lower_case, one_of


class ConnectorType(Enum):
    """KIP-656's choice of connector: who assigns partitions, and where positions are."""

    SINK = "sink"
    SOURCE = "source"


class SourceSupport(Enum):
    """Connect's choices for source connectors that write exactly once."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"


class ModeChange(Enum):
    """What a start does with a flow that ran as a source connector until now."""

    REFUSE = "refuse"
    ADOPT = "adopt"


class DataPath(Enum):
    """Which connections records take from the source to the target."""

    AUTO = "auto"
    CLIENT = "client"


ConnectorChoice = Annotated[ConnectorType, BeforeValidator(lower_case), one_of(ConnectorType)]
SupportChoice = Annotated[SourceSupport, BeforeValidator(lower_case), one_of(SourceSupport)]
ChangeChoice = Annotated[ModeChange, BeforeValidator(lower_case), one_of(ModeChange)]
PathChoice = Annotated[DataPath, BeforeValidator(lower_case), one_of(DataPath)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSettings:
    """Where a flow has its positions, and who assigns its partitions."""

    type: Annotated[
        ConnectorChoice,
        Key(
            "connector.type",
            "sink",
            "`source`: with the positions of MirrorMaker 2 in `mm2-offsets.A.internal`, and at "
            "least once unless `exactly.once.source.support` is `enabled`.",
        ),
    ]
    exactly_once_support: Annotated[
        SupportChoice,
        Key(
            "exactly.once.source.support",
            "disabled",
            "With `connector.type = source`, `enabled` means exactly once. A sink needs no such "
            "line.",
        ),
    ]
    listener: Annotated[
        HandlerClass,
        Key(
            "rebalance.listener",
            "",
            "A [Python class](plugins.md#a-rebalance-listener) that is notified when a task gets "
            "or loses partitions.",
            shown_default="none",
        ),
    ]
    listener_args: Annotated[
        Text, Key("rebalance.listener.args", "", "Passed to the class.", shown_default="none")
    ]
    change: Annotated[
        ChangeChoice,
        Key(
            "mode.change",
            "refuse",
            "What a start in exactly-once mode does with a flow that ran as a source connector. "
            "`adopt`: [takes its positions over](migrate-from-mm2.md#while-it-runs).",
        ),
    ]
    data_path: Annotated[
        PathChoice,
        Key(
            "data.path",
            "auto",
            "Who reads and writes the records. `auto`: [our own lane](data-path.md), which passes "
            "whole batches through, or librdkafka where a login or TLS needs it. `client`: "
            "librdkafka.",
        ),
    ]
