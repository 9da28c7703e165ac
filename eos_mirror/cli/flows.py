"""Finding the flow that a command names."""

from eos_mirror.errors import ConfigError
from eos_mirror.settings.model import FlowSettings, Settings


def flow_named(settings: Settings, name: str) -> FlowSettings:
    """
    The enabled flow `A->B`.

    Raises:
        ConfigError: There is none; the message lists those that there are.
    """
    for flow in settings.flows:
        if str(flow.flow) == name:
            return flow
    names = ", ".join(str(flow.flow) for flow in settings.flows)
    raise ConfigError(f"no enabled flow {name}; there are: {names}")
