"""Infrastructure code of ``agui deploy --emit`` and of ``deploy``, read by the tools of others in their environment."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.deploy.conftest import no_settings, project
from tests.deploy.test_infrastructure import CLAIMS
from tests.deploy.test_plan import FULL, write
from tests.docs.documents import ROOT

__all__ = ["no_settings", "project"]

TOOLS = ROOT / ".venv" / "infrastructure" / "bin"
TERRAFORM = Path("/usr/local/bin/terraform")
PLUGINS = Path("/opt/tf-plugins")


def run(program: str, *arguments: str, folder: Path | None = None) -> None:
    """Run a tool, and fail with what it says."""
    own = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1", "CDK_OUTDIR": "cdk.out"}  # as the command cdk sets it
    ran = subprocess.run(
        (TOOLS / program, *arguments),
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def emit(form: str, project: Path, text: str, options: Sequence[str] = ()) -> Path:
    write(project, text)
    assert main(["deploy", "--emit", form, "--output", form, *options]) == 0
    return project / form


@pytest.mark.parametrize(
    ("text", "options"), [("", ()), (FULL + CLAIMS, ("--endpoint", "prod"))], ids=["defaults", "everything"]
)
def test_cfn_lint_finds_nothing_in_the_template(project: Path, text: str, options: Sequence[str]) -> None:
    run(
        "cfn-lint",
        "--regions",
        "us-east-1",
        "--",
        str(emit("cloudformation", project, text, options) / "template.json"),
    )


def test_cdk_makes_the_template_of_its_app(project: Path) -> None:
    folder = emit("cdk", project, FULL + CLAIMS, ("--endpoint", "prod"))
    run("python", "app.py", folder=folder)
    [made] = (folder / "cdk.out").glob("*.template.json")
    resources, ours = (json.loads(path.read_text())["Resources"] for path in (made, folder / "template.json"))
    assert {name: resources[name] for name in ours} == ours


@pytest.mark.skipif(not (TERRAFORM.exists() and PLUGINS.exists()), reason="terraform or its provider is not here")
def test_terraform_takes_the_role(project: Path) -> None:
    """The provider that is here, 5.100, has no runtime of AgentCore, and calls the region's name otherwise."""
    (project / "policy.json").write_text(json.dumps({"Statement": [{"Resource": "${aws:PrincipalTag/team}"}]}))
    file = emit("terraform", project, FULL) / "main.tf.json"
    module = json.loads(file.read_text().replace("current.region}", "current.name}"))
    module["terraform"]["required_providers"]["aws"]["version"] = "5.100.0"
    module["resource"] = {name: each for name, each in module["resource"].items() if name.startswith("aws_iam_")}
    del module["output"]
    file.write_text(json.dumps(module))
    for arguments in (("init", f"-plugin-dir={PLUGINS}"), ("validate",)):
        run(str(TERRAFORM), f"-chdir={file.parent}", *arguments, "-no-color")


@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_kubernetes_takes_the_manifests(version: str) -> None:
    manifests = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    assert len(manifests) == 4
    run("kubernetes-validate", "--strict", "-k", version, *map(str, manifests))
