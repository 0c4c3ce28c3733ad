"""The template of ``agui deploy --emit`` and the manifests of ``deploy``, read by the tools of others."""

import subprocess
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.aws.deploy.conftest import no_settings, project
from tests.aws.deploy.test_template import CLAIMS, FULL, write
from tests.docs.documents import ROOT

__all__ = ["no_settings", "project"]

TOOLS = ROOT / ".venv" / "bin"


def run(program: str, *arguments: str) -> None:
    ran = subprocess.run((TOOLS / program, *arguments), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("text", "options"),
    [("", ()), (FULL + CLAIMS, ("--endpoint", "prod")), ("[deploy]\nmemory_days = 30", ())],
    ids=["defaults", "everything", "memory"],
)
def test_cfn_lint_finds_nothing_in_the_template(project: Path, text: str, options: tuple[str, ...]) -> None:
    write(project, text)
    assert main(["deploy", "--emit", *options]) == 0
    run("cfn-lint", "--regions", "us-east-1", "--", str(project / "infrastructure" / "template.json"))


@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_kubernetes_takes_the_manifests(version: str) -> None:
    manifests = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    assert len(manifests) == 4
    run("kubernetes-validate", "--strict", "-k", version, *map(str, manifests))
