"""Every verb that acts on a running mirror, under load, with tasks in child processes."""

from typing import ClassVar

import pytest

from tests.mirror.verbs_under_load import VerbsUnderLoad

pytestmark = [pytest.mark.brokers, pytest.mark.long]


class TestLocal(VerbsUnderLoad):
    """See `VerbsUnderLoad`."""

    runtime: ClassVar = {"runtime": "local"}
