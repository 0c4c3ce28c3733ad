"""The site of the documentation is built without a fault."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

pytestmark = pytest.mark.packages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for source in ("app", "clients"):
        (folder / source).symlink_to(ROOT / source)
    path = os.pathsep.join(map(str, (ROOT, ROOT / "app", ROOT / "clients" / "python" / "src")))
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "build" / "site"


def test_pages_have_what_is_generated_from_the_code(site: Path) -> None:
    assert "MODEL_THROTTLED" in (site / "http-api.html").read_text(encoding="utf-8")
    assert "--dry-run" in (site / "command-line.html").read_text(encoding="utf-8")
    assert "run_agent" in (site / "python.html").read_text(encoding="utf-8")
