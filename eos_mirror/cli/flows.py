"""Finds the flow that a command names."""

from eos_mirror.errors import ConfigError
from eos_mirror.settings.model import FlowSettings, Settings


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
