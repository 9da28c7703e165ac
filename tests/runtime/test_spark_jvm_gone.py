"""A task is asked about, killed and launched after the JVM has died: nothing is raised."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = """
import os, signal, sys, threading
from datetime import timedelta
from pyspark import SparkContext
from eos_mirror.runtime.spark import SparkRuntime
from eos_mirror.runtime.spec import TaskSpec

runtime = SparkRuntime.start(
    {"spark.master": "local[1]"}, app="gone", tasks_count=1, on_jvm_death=lambda: None
)
spec = TaskSpec(
    slot=0, submission="0.0", control_host="127.0.0.1", control_port=1, key="00",
    entry="tests.runtime.entries:idle", config={},
)
running = runtime.launcher("A->B").launch(spec)
jvm = SparkContext._gateway.proc
running._has_lost_its_task()  # connects
os.kill(jvm.pid, signal.SIGSTOP)
asking = threading.Thread(target=running._has_lost_its_task)
asking.start()
while "readinto" not in str(sys._current_frames()[asking.ident].f_code.co_name):
    pass  # until it waits for an answer
os.kill(jvm.pid, signal.SIGKILL)
jvm.wait()
asking.join()
print("lost:", running._has_lost_its_task(), flush=True)
running.kill()
print("killed", flush=True)
print(runtime.launcher("A->B").launch(spec).wait(timedelta(minutes=1)).outcome.name, flush=True)
os._exit(0)
"""


def test_a_dead_jvm_is_no_error_of_a_task() -> None:
    """The watch of the JVM ends the driver: a failed task would be a second cause."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "lost: False\nkilled\nRESTART\n"), done.stderr
    assert "Traceback" not in done.stderr
