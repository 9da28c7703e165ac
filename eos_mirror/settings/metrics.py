"""The keys about metrics; the declaration of a field is also its row in the table of keys."""

from dataclasses import dataclass
from typing import Annotated

from eos_mirror.settings.key import Key
from eos_mirror.settings.values import Boolean, Exporters, Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSettings:
    """Where metrics go."""

    exporters: Annotated[
        Exporters,
        Key(
            "metrics.exporters",
            "",
            "`prometheus`: a page for Prometheus to read; `otlp`: sent to a collector, as "
            "OpenTelemetry's `OTEL_EXPORTER_OTLP_*` say.",
            shown_default="none",
        ),
    ]
    listener: Annotated[
        Listener,
        Key("metrics.listener", "127.0.0.1:9464", "Where Prometheus finds the page `/metrics`."),
    ]
    partitions: Annotated[
        Boolean,
        Key(
            "metrics.partitions",
            "true",
            "Also MirrorMaker 2's metrics of each partition, and its lag: 15 series each.",
        ),
    ]
