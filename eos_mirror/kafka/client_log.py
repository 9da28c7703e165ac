"""Gives a client a log of its own. librdkafka reports broken connections in its log only."""

import logging
from typing import Final

CLOSED_CONNECTIONS: Final = 6
"""librdkafka's level of the line when the peer closed the connection without an error."""


def logger_for(handler: logging.Handler) -> logging.Logger:
    """Return a logger for one client, outside the tree of loggers."""
    logger = logging.Logger("librdkafka")  # noqa: LOG001 (private on purpose)
    logger.addHandler(handler)
    return logger
