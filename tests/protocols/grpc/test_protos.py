"""The compiled protocol buffers are those of ``proto/``."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.packages

ROOT = Path(__file__).parents[3]
GENERATED = ROOT / "app" / "agui_container" / "protocols" / "gen"
SERVICES = "services.binpb"


def test_the_compiled_files_are_current(tmp_path: Path) -> None:
    sources = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto"))
    made = [f"--descriptor_set_out={tmp_path / SERVICES}", f"--pyi_out={tmp_path}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", "proto", "--include_imports", *made]
    subprocess.run([*command, *sources], cwd=ROOT, check=True)
    for path in [tmp_path / SERVICES, *tmp_path.rglob("*.pyi")]:
        assert path.read_bytes() == (GENERATED / path.name).read_bytes(), "run `make proto`"
