"""The metrics settings. The declaration of a field is also its row in the table of keys."""

from dataclasses import dataclass
from typing import Annotated

from eos_mirror.settings.key import Key
from eos_mirror.settings.values import Boolean, Exporters, Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSettings:
    """Where metrics are exported, and at which detail."""

    exporters: Annotated[
        Exporters,
        Key(
            "metrics.exporters",
            "",
            "`prometheus`: serve a page that Prometheus scrapes; `otlp`: send to a collector, "
            "configured by OpenTelemetry's `OTEL_EXPORTER_OTLP_*` variables.",
            shown_default="none",
        ),
    ]
    listener: Annotated[
        Listener,
        Key("metrics.listener", "127.0.0.1:9464", "Address of the page `/metrics` for Prometheus."),
    ]
    partitions: Annotated[
        Boolean,
        Key(
            "metrics.partitions",
            "true",
            "Also export MirrorMaker 2's metrics per partition, lag and state: 17 series each, or "
            "29 with both `metric.names.formats`.",
        ),
    ]
