"""The parts of the page that need no browser, in their own tests."""

import shutil
import subprocess

from tests.console.driver import ROOT, missing

WEB = ROOT / "clients/web"


def test_the_unit_tests_of_the_page_pass() -> None:
    if shutil.which("node") is None or not (WEB / "node_modules/esbuild").exists():
        missing("the tools of the chat page are not installed; `make web-tools` installs them")
    ran = subprocess.run(["node", "test.mjs"], cwd=WEB, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
