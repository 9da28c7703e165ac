"""The table of the import law: what each part of the package may import."""

ALLOWED = {
    "cli": {
        "operate", "driver", "rest", "demo", "telemetry", "settings", "testing", "core", "errors",
    },
    "rest": {"operate", "driver", "settings", "core", "errors"},
    "demo": {"testing", "kafka", "runtime", "core", "errors"},
    "operate": {
        "driver", "tasks", "audit", "runtime", "replication", "kafka", "settings", "ports", "core",
        "errors",
    },
    "driver": {
        "runtime", "tasks.messages", "kafka", "settings", "telemetry", "ports", "core", "errors",
    },
    "tasks": {"replication", "kafka", "wire", "ports", "core", "errors"},
    "audit": {"kafka", "core", "errors"},
    "runtime": {"ports", "errors"},
    "replication": {"ports", "core", "errors"},
    "kafka": {"ports", "core", "errors"},
    "wire": {"ports", "core", "errors"},
    "settings": {"core", "errors"},
    "telemetry": set[str](),
    "ports": {"core", "errors"},
    "core": {"errors"},
    "errors": set[str](),
    "client": {"kafka", "core"},
    "testing": {"errors"},
    "testing.entry": {"tasks", "replication", "ports"},
}  # fmt: skip
"""What each part may import besides itself, the standard library and the libraries it owns. A
module with a row of its own may import more than its part."""
