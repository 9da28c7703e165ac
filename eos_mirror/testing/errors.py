"""The errors of test clusters, and what to do about each."""

from eos_mirror.errors import MirrorError


class NotInstalled(MirrorError):  # noqa: N818 - its name says what to do next
    """This machine lacks something. The message is one line and says what to install."""


class ClusterFailed(MirrorError):  # noqa: N818 - as above
    """A broker did not start, or did not respond in time. Carries its last log lines."""
