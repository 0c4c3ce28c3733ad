"""The locks of Roboto's package, which judges the server: the release that is documented here, and the newest."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.packaging.test_packaging import locked, version

ROOT = Path(__file__).parents[2]
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
