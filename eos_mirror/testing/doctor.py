"""Checks what this machine has for running Kafka brokers, and what it lacks."""

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eos_mirror.testing.backend import Backend, external_problem
from eos_mirror.testing.containers import docker_problem
from eos_mirror.testing.errors import NotInstalled
from eos_mirror.testing.jars import cache_folder, cached, jars_folder, verify
from eos_mirror.testing.java import find_java, java_major
from eos_mirror.testing.releases import chosen_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    The state of one thing that brokers need.

    Attributes:
        found: What was found; empty if nothing usable was.
        problem: What is wrong and what to do; empty if there is no problem.
    """

    name: str
    found: str = ""
    problem: str = ""


def examine(environ: Mapping[str, str] = os.environ) -> Sequence[Finding]:
    """Check everything, without fetching or starting anything."""
    docker = docker_problem(environ) or ""
    external = external_problem(environ) or ""
    return (
        Finding(name="external clusters", found="" if external else "set", problem=external),
        _java(environ),
        _jars(environ),
        _fetcher(environ),
        Finding(name="docker", found="" if docker else "answers", problem=docker),
    )


def usable_backend(findings: Sequence[Finding]) -> Backend | None:
    """Return the backend that would be used, judged without trying it."""
    found = {finding.name for finding in findings if finding.found}
    if "external clusters" in found:
        return Backend.EXTERNAL
    if "java" in found and found & {"kafka jars", "jar fetcher"}:
        return Backend.JVM
    return Backend.DOCKER if "docker" in found else None


def _java(environ: Mapping[str, str]) -> Finding:
    try:
        java = find_java(environ)
    except NotInstalled as exc:
        return Finding(name="java", problem=str(exc))
    return Finding(name="java", found=f"Java {java_major(java)} at {java}")


def _jars(environ: Mapping[str, str]) -> Finding:
    release = chosen_release(environ)
    folder = jars_folder(release, cache_folder(environ))
    if not cached(release, folder.parent):
        problem = f"{release} is not in {folder}; the first start fetches it"
        return Finding(name="kafka jars", problem=problem)
    try:
        verify(release, folder)
    except NotInstalled as exc:
        return Finding(name="kafka jars", problem=f"{exc}. Remove {folder} to fetch it again")
    return Finding(name="kafka jars", found=f"{release}, verified, in {folder}")


def _fetcher(environ: Mapping[str, str]) -> Finding:
    if maven := shutil.which("mvn", path=environ.get("PATH", os.defpath)):
        return Finding(name="jar fetcher", found=f"Maven at {maven}")
    if importlib.util.find_spec("pyspark"):
        return Finding(name="jar fetcher", found="the Ivy inside PySpark")
    return Finding(name="jar fetcher", problem="put `mvn` on the PATH, or install pyspark")
