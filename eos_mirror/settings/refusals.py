"""What a flow does with records that the target refuses."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator

from eos_mirror.settings.key import Key
from eos_mirror.settings.values import (
    Boolean,
    CountOrBrokerDefault,
    TopicName,
    lower_case,
    one_of,
)


class Tolerance(Enum):
    """Which errors do not stop a partition. Source: Connect's ToleranceType."""

    NONE = "none"
    ALL = "all"


ToleranceChoice = Annotated[Tolerance, BeforeValidator(lower_case), one_of(Tolerance)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSettings:
    """Where refused records go, or whether they stop their partition."""

    abort_on_send_failure: Annotated[
        Boolean,
        Key(
            "abort.on.send.failure",
            "true",
            "At least once: stop a partition at a record that the target refuses. "
            "`false`: drop the record and add an entry to the ledger.",
        ),
    ]
    tolerance: Annotated[
        ToleranceChoice,
        Key(
            "errors.tolerance",
            "none",
            "`all`: move a record that the target refuses to the [quarantine](quarantine.md), and "
            "continue.",
        ),
    ]
    quarantine: Annotated[
        TopicName,
        Key(
            "errors.deadletterqueue.topic.name",
            "",
            "The quarantine: a topic of the target. It is created if it does not exist.",
            shown_default="`eos-mirror.<A>.<B>.quarantine`",
        ),
    ]
    replication_factor: Annotated[
        CountOrBrokerDefault,
        Key(
            "errors.deadletterqueue.topic.replication.factor",
            "3",
            "Replicas of a new quarantine; -1: broker's default.",
        ),
    ]
