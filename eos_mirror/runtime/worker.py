"""The function that a Spark job runs: one task in one Python worker."""

from collections.abc import Iterable, Iterator

from eos_mirror.runtime.body import run_task
from eos_mirror.runtime.spec import spec_from_json


def run_in_worker(spec_text: str, _partition: Iterable[object]) -> Iterator[str]:
    """
    Run the task as the body of `mapPartitions`; the spec comes with the closure.

    Returns only when the task was stopped. Every other outcome exits the worker process: the job
    fails, and the supervisor submits the next one.
    """
    return iter([run_task(spec_from_json(spec_text)).value])
