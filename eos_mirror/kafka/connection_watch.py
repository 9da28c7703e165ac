"""Detects broken connections, which librdkafka reports in its log only."""

import logging


class ConnectionWatch(logging.Handler):
    """
    Notes that a connection of a producer broke, although the client repaired it.

    The client sends the request that was in flight again, 25 ms later. A late first copy of an
    EndTxn would then commit the next transaction (KAFKA-17754). The log line is written before the
    request is sent again, so it is there before the commit returns. librdkafka drops a second line
    like it for 30 s; by then this incarnation has been replaced.
    """

    def __init__(self) -> None:
        super().__init__()
        self.was_cut = False

    def emit(self, record: logging.LogRecord) -> None:
        """Note a failure. The bootstrap connection carries no transactional request."""
        text = record.getMessage()
        if text.startswith("FAIL") and "/bootstrap]" not in text:
            self.was_cut = True
