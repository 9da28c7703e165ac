"""Loads the configuration that a command names, and finds the flow."""

from collections.abc import Collection

from eos_mirror.driver.client_check import check_clients
from eos_mirror.errors import ConfigError
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings, Settings


def settings_of(path: str, *, clusters: Collection[str] | None = None) -> Settings:
    """
    Load a configuration, and make sure that its clients can be made.

    Args:
        clusters: Only flows into these aliases; None means all.

    Raises:
        ConfigError: Lists every fault, one line each.
    """
    settings = load_settings(path, clusters=clusters)
    check_clients(settings)
    return settings


def flow_named(settings: Settings, name: str) -> FlowSettings:
    """
    Return the enabled flow with this name, such as `A->B`.

    Raises:
        ConfigError: No enabled flow has this name; the message lists the enabled flows.
    """
    for flow in settings.flows:
        if str(flow.flow) == name:
            return flow
    names = ", ".join(str(flow.flow) for flow in settings.flows)
    raise ConfigError(f"no enabled flow {name}; there are: {names}")
