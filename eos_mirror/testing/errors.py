"""What can go wrong with embedded clusters, and what each error asks of its reader."""

from eos_mirror.errors import MirrorError


class NotInstalled(MirrorError):  # noqa: N818 - its name says what to do next
    """This machine lacks something. The message is one line and says what to install."""


class ClusterFailed(MirrorError):  # noqa: N818 - as above
    """A broker did not start, or did not do what was asked in time. Carries its last log lines."""
