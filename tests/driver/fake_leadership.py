"""The group of the drivers, without a broker."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from eos_mirror.kafka.groups import GroupMember


class FakeLeadership:
    """
    `Leadership` with scripted answers.

    Attributes:
        answers: Whether this run leads, poll by poll; the last answer repeats.
        members: The other members, question by question; the last answer repeats.
        act: Called by each poll.
        names: Group and topic that it was made with.
    """

    def __init__(
        self, *answers: bool, members: Sequence[list[GroupMember] | None] = (None,)
    ) -> None:
        self.answers, self.members = list(answers), list(members)
        self.act: Callable[[], None] = lambda: None
        self.leads = self.is_closed = False
        self.polls = 0
        self.names: tuple[str, str] | None = None

    def poll(self, _wait: timedelta) -> bool:
        """See `Leadership`."""
        self.polls += 1
        self.act()
        if self.answers:
            self.leads = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return self.leads

    def others(self, _admin: object) -> list[GroupMember] | None:
        """See `Leadership`."""
        return self.members.pop(0) if len(self.members) > 1 else self.members[0]

    def assume(self) -> None:
        """See `Leadership`."""
        self.answers, self.leads = [], True

    def close(self) -> None:
        """See `Leadership`."""
        self.is_closed = True


def alone(_config: object, **_: object) -> FakeLeadership:
    """Make the leadership of the only run."""
    return FakeLeadership(True)
