"""The template of ``agui deploy --emit`` and the manifests of ``deploy``, read by the tools of others."""

import subprocess
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.aws.deploy.conftest import no_settings, project
from tests.aws.deploy.test_template import CLAIMS, FULL, write
from tests.docs.documents import GUIDES, ROOT
from tests.machine import find_program

__all__ = ["no_settings", "project"]

TOOLS = ROOT / ".venv" / "bin"
PROVIDERS = Path("/opt/tf-plugins")
"""Providers of Terraform, on a machine that does not reach their registry."""


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


def test_terraform_takes_the_guide_and_the_template(project: Path) -> None:
    assert main(["deploy", "--emit"]) == 0
    [guide] = [block for block in GUIDES["deploy"].blocks if "aws_cloudformation_stack" in block.text]
    (project / "main.tf").write_text(guide.text)
    terraform = find_program("terraform")
    providers = [f"-plugin-dir={PROVIDERS}"] if PROVIDERS.exists() else []
    if subprocess.run([terraform, "init", *providers], capture_output=True, check=False).returncode:
        pytest.skip("Terraform's provider for AWS is not to be had here")
    run(terraform, "validate", "-no-color")


@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_kubernetes_takes_the_manifests(version: str) -> None:
    manifests = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    assert len(manifests) == 4
    run("kubernetes-validate", "--strict", "-k", version, *map(str, manifests))
