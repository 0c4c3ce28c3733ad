"""The lock of the peers that ``make bench`` measures: exact versions, shared packages in our versions."""

from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
