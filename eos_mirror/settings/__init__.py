"""Turns the text of an mm2.properties into typed settings and complete client configurations."""

from eos_mirror.settings.clients import (
    source_admin,
    source_consumer,
    target_admin,
    target_producer,
)
from eos_mirror.settings.connector import ConnectorType
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.mask import Masked, mask, masked
from eos_mirror.settings.model import ClusterSettings, FlowSettings, Settings
from eos_mirror.settings.values import BoundaryMode, PolicyClass, Runtime

__all__ = [
    "BoundaryMode",
    "ClusterSettings",
    "ConnectorType",
    "FlowSettings",
    "Masked",
    "PolicyClass",
    "Runtime",
    "Settings",
    "fingerprint",
    "load_settings",
    "mask",
    "masked",
    "source_admin",
    "source_consumer",
    "target_admin",
    "target_producer",
]
