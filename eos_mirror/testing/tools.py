"""
Runs Kafka's own command line tools, as independent evidence.

They share no code with librdkafka. That is why tests use them.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from eos_mirror.testing.installation import Installation, logging_flag
from eos_mirror.testing.processes import run


@dataclass(frozen=True, slots=True)
class Tool:
    """
    A tool of Kafka.

    Attributes:
        main_class: Of Kafka 4.4; `Release.main_classes` has those that differ in a release.
        bootstrap_option: The option that takes the cluster; None if the tool reads files.
    """

    main_class: str
    bootstrap_option: str | None = "--bootstrap-server"


TOOLS = {
    "AclCommand": Tool("org.apache.kafka.tools.AclCommand"),
    "ConfigCommand": Tool("org.apache.kafka.tools.ConfigCommand"),
    "ConsoleConsumer": Tool("org.apache.kafka.tools.consumer.ConsoleConsumer"),
    "ConsoleProducer": Tool("org.apache.kafka.tools.ConsoleProducer"),
    "ConsumerGroupCommand": Tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"),
    "DumpLogSegments": Tool("org.apache.kafka.tools.DumpLogSegments", None),
    "FeatureCommand": Tool("org.apache.kafka.tools.FeatureCommand"),
    "GetOffsetShell": Tool("org.apache.kafka.tools.GetOffsetShell"),
    "LeaderElectionCommand": Tool("org.apache.kafka.tools.LeaderElectionCommand"),
    "ReassignPartitionsCommand": Tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand"),
    "TopicCommand": Tool("org.apache.kafka.tools.TopicCommand"),
    "TransactionalMessageCopier": Tool(
        "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list"
    ),
    "TransactionsCommand": Tool("org.apache.kafka.tools.TransactionsCommand"),
    "VerifiableConsumer": Tool("org.apache.kafka.tools.VerifiableConsumer"),
    "VerifiableProducer": Tool("org.apache.kafka.tools.VerifiableProducer"),
}

SCRIPTS = {
    "kafka-acls": "AclCommand",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-consumer-groups": "ConsumerGroupCommand",
    "kafka-dump-log": "DumpLogSegments",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
}
"""The tools that people know by a script of Kafka's `bin` folder."""


def run_script(installation: Installation, script: str, *arguments: str) -> int:
    """
    Do what a script of Kafka's `bin` folder does, on this process's terminal.

    Args:
        script: With or without `.sh`.

    Returns:
        Its exit code.

    Raises:
        KeyError: There is no such script; the message lists all.
    """
    name = script.removesuffix(".sh")
    if name not in SCRIPTS:
        raise KeyError(f"no tool {script!r}; there are {', '.join(SCRIPTS)}")
    command = _command(installation, SCRIPTS[name], arguments)
    return subprocess.run(command, check=False).returncode  # noqa: S603 (a fixed class of Kafka's)


def _command(installation: Installation, name: str, arguments: Sequence[str]) -> list[str]:
    main_class = installation.release.main_classes.get(name, find_tool(name).main_class)
    flags = [
        *installation.fast_flags(),
        logging_flag(installation, level="WARN", stream="SYSTEM_ERR"),
    ]
    return installation.command(main_class, *arguments, flags=flags)


def find_tool(name: str) -> Tool:
    """
    Return a tool by its short name; a name with dots is a main class that reads files.

    Raises:
        KeyError: There is no such tool; the message lists all.
    """
    if "." in name:
        return Tool(name, None)
    try:
        return TOOLS[name]
    except KeyError:
        raise KeyError(f"no tool {name!r}; there are {', '.join(sorted(TOOLS))}") from None


def run_tool(
    installation: Installation,
    name: str,
    *arguments: str,
    bootstrap: str,
    stdin: str | None,
    timeout_s: float,
) -> subprocess.CompletedProcess[str]:
    """
    Run a tool to its exit. The cluster is passed unless the arguments name one.

    Raises:
        TimeoutError: The tool did not exit in time; carries its output so far.
    """
    tool = find_tool(name)
    if tool.bootstrap_option and tool.bootstrap_option not in arguments:
        arguments = (tool.bootstrap_option, bootstrap, *arguments)
    done = run(_command(installation, name, arguments), stdin=stdin, timeout_s=timeout_s)
    done.args = [name, *arguments]  # the whole command line is a page of jars
    return done
