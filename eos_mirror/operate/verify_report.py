"""Writes the reports of proofs as files."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from eos_mirror import __version__
from eos_mirror.audit.page import page_of
from eos_mirror.audit.report import Report

__all__ = ["Report", "write_reports"]


def write_reports(
    reports: Sequence[Report], *, json_file: Path | None, html_file: Path | None
) -> None:
    """Write the full reports as JSON and as an HTML page; None skips a file."""
    documents = [report.document() for report in reports]
    if json_file is not None:
        json_file.write_text(json.dumps(documents, indent=1) + "\n")
    if html_file is not None:
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        html_file.write_text(page_of(documents, made=made, version=__version__))
