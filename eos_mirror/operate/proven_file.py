"""The file of `verify --resume`: the ranges of each flow that are already proven."""

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from eos_mirror.audit.digest import VERSION as DIGEST_VERSION
from eos_mirror.audit.proven import Proven, ProvenRange
from eos_mirror.errors import ConfigError

VERSION = 1
SAVED_EVERY_S = 5.0


class ProvenFile:
    """Replaced atomically as a whole: a reader finds the current state or the previous one."""

    def __init__(self, path: Path | None) -> None:
        """
        Args:
            path: The file; None keeps nothing.

        Raises:
            ConfigError: The file has other contents, or cannot be read or written.
        """
        self._path = path
        self._flows: defaultdict[str, Proven] = defaultdict(Proven)
        self._saved_at = time.monotonic()
        try:
            if path is not None and path.exists():
                self._load(json.loads(path.read_text()))
            self.save()
        except OSError as exc:
            raise ConfigError(f"{path}: {exc.strerror}") from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise ConfigError(
                f"{path}: not what verify --resume writes: choose another file, or delete it"
            ) from exc

    def of(self, flow: str) -> Proven:
        """Return the proven ranges of a flow; the proof adds to them."""
        return self._flows[flow]

    def save_now_and_then(self) -> None:
        """Save if the last time is more than `SAVED_EVERY_S` ago."""
        if time.monotonic() - self._saved_at > SAVED_EVERY_S:
            self.save()

    def save(self) -> None:
        """Write the whole file."""
        if self._path is None:
            return
        flows = {
            flow: [one.document() for one in proven.ranges] for flow, proven in self._flows.items()
        }
        document = {"version": VERSION, "digest": DIGEST_VERSION, "proven": flows}
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.write_text(json.dumps(document) + "\n")
        beside.replace(self._path)
        self._saved_at = time.monotonic()

    def _load(self, document: dict[str, Any]) -> None:
        if (document["version"], document["digest"]) != (VERSION, DIGEST_VERSION):
            raise ValueError("written by another version")
        for flow, ranges in document["proven"].items():
            self._flows[flow] = Proven(map(ProvenRange.from_document, ranges))
