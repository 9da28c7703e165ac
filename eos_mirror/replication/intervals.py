"""How often, and how soon, a mirror task does what it does beside copying."""

from typing import Final

TEND_EVERY_S: Final = 0.25
"""Interval of housekeeping and reports."""

CHECK_TOPICS_EVERY_S: Final = 5.0
"""Interval at which the ids of source topics are compared."""

ADVISE_EVERY_S: Final = 5.0
"""Interval at which the source group's offsets are written for lag tools."""

LIMITS_EVERY_S: Final = 30.0
"""Interval at which the limits of topics that need small batches are read again."""

KEEP_ALIVE_SOON_S: Final = 30.0
"""Longest delay of the first keep-alive after an acquire. When the last commit was is unknown, and
restarts must not postpone the keep-alive."""

ADVANCE_AFTER_S: Final = 0.5
"""Pause before an idle partition's end, past control records, is committed."""
