"""Locks of environments beside ``.venv``: exact versions, and shared packages in our versions."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.packaging.test_packaging import locked, version

ROOT = Path(__file__).parents[2]
LOCK = "requirements-bench.lock"
WANTED = [Requirement(line) for line in (ROOT / "bench/peers.in").read_text().splitlines() if not line.startswith("#")]
SERVES = {"fastapi", "httptools", "pydantic", "starlette", "uvicorn", "uvloop", "websockets", "ag-ui-protocol"}


def test_it_holds_exact_versions_and_no_address() -> None:
    assert "://" not in (ROOT / LOCK).read_text()
    assert all(version(requirement) and not requirement.url for requirement in locked(LOCK).values())


def test_it_answers_every_peer() -> None:
    lock = locked(LOCK)
    for wanted in WANTED:
        assert wanted.specifier.contains(version(lock[canonicalize_name(wanted.name)])), f"{wanted}: run `make lock`"


def test_peers_are_served_by_our_versions() -> None:
    ours, theirs = locked("requirements.lock"), locked(LOCK)
    assert {name: version(theirs[name]) for name in SERVES} == {name: version(ours[name]) for name in SERVES}


# --- Roboto -----------------------------------------------------------------------------------------------------------


LOCKS = {"requirements-roboto-oldest.lock": "oldest.in", "requirements-roboto.lock": "newest.in"}


@pytest.mark.parametrize(("lock", "wanted"), LOCKS.items())
def test_a_lock_holds_exact_versions_no_address_and_the_release_that_is_wanted(lock: str, wanted: str) -> None:
    *_, line = (ROOT / "tests" / "roboto" / wanted).read_text().splitlines()
    assert "://" not in (ROOT / lock).read_text()
    assert all(version(requirement) and not requirement.url for requirement in locked(lock).values())
    assert Requirement(line).specifier.contains(version(locked(lock)["roboto"])), "run `make lock`"


def test_the_releases_are_of_both_generations() -> None:
    """AgentThread took the place of AgentSession in 0.46."""
    oldest, newest = (Version(version(locked(lock)["roboto"])) for lock in LOCKS)
    assert oldest < Version("0.46") <= newest
