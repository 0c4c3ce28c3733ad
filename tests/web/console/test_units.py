"""The reducer and the store of the page, in their own tests."""

import subprocess

import pytest

from tests.machine import find_program
from tests.web.console.driver import ROOT

pytestmark = pytest.mark.other_language


def test_the_unit_tests_of_the_page_pass() -> None:
    node = find_program("node")
    ran = subprocess.run(
        [node, "test.mjs"], cwd=ROOT / "clients/web", capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
