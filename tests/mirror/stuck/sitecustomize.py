"""Lets no range be folded. Python loads this if the folder is on the PYTHONPATH."""

import threading
from typing import Any

from eos_mirror.audit.worker import Work


def fold(self: Work, where: Any) -> Any:  # noqa: ARG001 (of the method that it replaces)
    """Wait until a signal ends the process."""
    threading.Event().wait()


Work.fold = fold  # type: ignore[method-assign] # that is the point
