"""The parts of the page that need no browser, in their own tests."""

import subprocess

from tests.console.driver import ROOT
from tests.machine import find_program

WEB = ROOT / "clients/web"


def test_the_unit_tests_of_the_page_pass() -> None:
    node = find_program("node")
    ran = subprocess.run([node, "test.mjs"], cwd=WEB, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
