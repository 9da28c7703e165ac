"""Every verb that acts on a running mirror, under load, with tasks on Spark."""

from typing import ClassVar

import pytest

from tests.mirror.verbs_under_load import VerbsUnderLoad

pytestmark = [pytest.mark.brokers, pytest.mark.long, pytest.mark.spark]


class TestSpark(VerbsUnderLoad):
    """See `VerbsUnderLoad`."""

    runtime: ClassVar = {"runtime": "spark", "spark_master": "local[2]"}
