"""Locks: exact versions, everything that the project asks for, and one version of a package in all of them."""

import json
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMAGE, TEST, ALL = LOCKS = [f"requirements{name}.lock" for name in ("", "-test", "-all")]
IMAGE_EXTRAS = ["aws", "grpc", "jwt", "mcp", "metrics", "postgresql", "redis", "sqlite"]


def locked(name: str) -> dict[str, Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / "locks" / name).read_text().splitlines())
    return {canonicalize_name(each.name): each for each in map(Requirement, filter(None, lines))}


def version(requirement: Requirement) -> str:
    [specifier] = requirement.specifier
    assert specifier.operator == "=="
    return specifier.version


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_exact_versions_and_no_address(name: str) -> None:
    assert all(version(requirement) and not requirement.url for requirement in locked(name).values())
    assert not re.search(r"://|^\s*-|@ ", (ROOT / "locks" / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize(("name", "more"), [(IMAGE, ()), (TEST, ()), (ALL, ("langgraph", "pydantic-ai"))])
def test_a_lock_answers_every_dependency_of_the_project(name: str, more: tuple[str, ...]) -> None:
    lock, optional = locked(name), PROJECT["optional-dependencies"]
    for wanted in map(
        Requirement, chain(PROJECT["dependencies"], *(optional[extra] for extra in (*IMAGE_EXTRAS, *more)))
    ):
        if wanted.name == "agui-client":  # of this checkout
            continue
        found = lock[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version(found)), f"{wanted} but locked {found}: run `make lock`"
        assert str(found.marker) == str(wanted.marker)


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    assert locked(IMAGE).items() <= locked(TEST).items() <= locked(ALL).items()


@pytest.mark.packages
def test_everything_in_the_image_is_a_wheel_for_aarch64() -> None:
    base = re.search(r"BASE_IMAGE=\S+/python:(3\.\d+)", (ROOT / "Dockerfile.arm64").read_text())
    assert base
    platforms = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--implementation=cp", "--report=-"]
    command += [f"--python-version={base[1]}", *(f"--platform={platform}" for platform in platforms)]
    done = subprocess.run([*command, "-r", f"locks/{IMAGE}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wheels = [item["download_info"]["url"] for item in json.loads(done.stdout)["install"]]
    assert len(wheels) == len(locked(IMAGE))
    assert all(re.search(r"(aarch64|none-any)\.whl$", wheel) for wheel in wheels)
