"""Which of the two clusters of a flow something concerns."""

from enum import Enum


class Side(Enum):
    """The cluster that a client talks to. Errors of that cluster are named after it."""

    SOURCE = "source"
    TARGET = "target"
