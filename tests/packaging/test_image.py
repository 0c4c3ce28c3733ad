"""The image and the compose file, checked without a Docker engine."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from agui_container.settings import Settings
from deploy.image.prepare import OWN_SERVICES
from tests.fixed_server import FixedServer, fixed_server

__all__ = ["fixed_server"]

ROOT = Path(__file__).parents[2]
SETTINGS = {f"AGUI_{name.upper()}" for name in Settings.model_fields}


Stage = list[tuple[str, str]]


def stages() -> list[Stage]:
    """Return the Dockerfile as (instruction, arguments) pairs: what precedes FROM, then one list for each stage."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile.arm64").read_text(), flags=re.MULTILINE)
    found: list[Stage] = [[]]
    for line in filter(None, map(str.strip, text.replace("\\\n", " ").splitlines())):
        instruction, arguments = line.split(maxsplit=1)
        if instruction == "FROM":
            found.append([])
        found[-1].append((instruction, arguments))
    return found


def of(stage: Stage, instruction: str) -> list[str]:
    return [arguments for name, arguments in stage if name == instruction]


def test_the_image_takes_only_what_exists_and_the_ignore_file_lets_in() -> None:
    _, build, _ = stages()
    sources = {source for arguments in of(build, "COPY") for source in arguments.split()[:-1]}
    assert all((ROOT / source).exists() for source in sources)
    assert {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")} == sources


def test_the_image_sets_only_settings_that_exist() -> None:
    [environment] = of(stages()[-1], "ENV")
    values = dict(pair.split("=", 1) for pair in environment.split())
    assert values["AGUI_ERROR_STATUS"] == "stream"
    assert {name for name in values if name.startswith("AGUI_")} <= SETTINGS


@pytest.mark.parametrize("status", [HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE])
def test_the_health_check_follows_ping_and_ignores_proxies(fixed_server: FixedServer, status: HTTPStatus) -> None:
    fixed_server.status = status
    [check] = of(stages()[-1], "HEALTHCHECK")
    _, *arguments = json.loads(check.partition(" CMD ")[2])
    env = {"AGUI_PORT": str(fixed_server.port), "http_proxy": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, check=False)
    assert (done.returncode == 0) is (status == HTTPStatus.OK)
    assert fixed_server.paths == ["/ping"]


def prepare(folder: Path, lock: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Prepare an environment with one package, a test folder and the data of two AWS services."""
    site, application = folder / "site-packages", folder / "agui"
    for name in ("botocore/data/sqs", "botocore/data/sts", "boto3/data/sqs", "small/tests", "small/inner/tests"):
        (site / name).mkdir(parents=True)
        (site / name / "file.json").write_text("x" * 1000)
    (site / "small-1.0.dist-info").mkdir()
    (site / "small-1.0.dist-info" / "METADATA").write_text("Name: Small\nVersion: 1.0\nLicense-Expression: MIT\n")
    (application / "agui_container").mkdir(parents=True)
    (application / "agui_container" / "__init__.py").write_text('__version__ = "7.8.9"\n')
    (application / "agui_container" / "page.js").write_bytes(bytes(2_000_000))
    (folder / "lock").write_text(lock)
    script = ROOT / "deploy" / "image" / "prepare.py"
    command = [sys.executable, "-I", *map(str, (script, site, folder / "lock", application)), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_unused_parts_go_and_what_is_left_is_listed(tmp_path: Path) -> None:
    done = prepare(tmp_path, "small==1.0  # via nobody\n")
    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "site-packages"
    assert [path.name for path in (site / "botocore/data").iterdir()] == ["sts"]
    assert not (site / "boto3/data/sqs").exists()
    assert not (site / "small/tests").exists()
    assert (site / "small/inner/tests").exists()  # an application may have a module of this name
    assert (tmp_path / "agui/licenses.txt").read_text() == "small==1.0  MIT\n"
    bill = json.loads((tmp_path / "agui/sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == "7.8.9"
    assert [each["purl"] for each in bill["components"]] == ["pkg:pypi/small@1.0"]


@pytest.mark.parametrize(("named", "left"), [("sqs", ["sqs", "sts"]), ("ec2", ["sts"])])
def test_services_that_an_agent_needs_stay(tmp_path: Path, named: str, left: list[str]) -> None:
    prepare(tmp_path, "small==1.0\n", "--aws-services", named)
    assert sorted(path.parent.name for path in tmp_path.glob("site-packages/botocore/data/*/file.json")) == left


@pytest.mark.parametrize(
    ("lock", "options", "reason"),
    [
        ("small==1.1\n", (), "small 1.1 of the lock is not installed"),
        ("small==1.0\n", ("--most-megabytes", "1"), "the packages and the application have more than 1 MB"),
    ],
)
def test_a_build_fails_for_another_version_and_for_an_image_that_is_too_large(
    tmp_path: Path, lock: str, options: Sequence[str], reason: str
) -> None:
    done = prepare(tmp_path, lock, *options)
    assert done.returncode == 1
    assert reason in done.stderr


def called_services() -> set[str]:
    """Services that a server calls. Commands such as `agui deploy` do not run in the image."""
    package = ROOT / "app" / "agui_container"
    elsewhere = (package / "cli", package / "aws" / "deploy")
    paths = (path for path in package.rglob("*.py") if not any(map(path.is_relative_to, elsewhere)))
    sources = (path.read_text() for path in paths)
    return {name for source in sources for name in re.findall(r"\.client\(\s*\"([\w-]+)\"", source)}


def test_the_services_that_the_server_calls_stay() -> None:
    assert {"bedrock-runtime", "bedrock-agentcore"} <= called_services() <= set(OWN_SERVICES)


def test_compose_passes_every_setting_but_where_to_listen_and_replicas_share_store_and_bus() -> None:
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    app = services["app"]["environment"]
    assert {name for name in app if not name.startswith("AWS_")} == SETTINGS - {"AGUI_HOST", "AGUI_PORT"}
    shared = {"AGUI_STORE": "postgresql://agui:agui@postgres/agui", "AGUI_BUS": "redis://valkey:6379/0"}
    replicas = [each for name, each in services.items() if name.startswith("replica-")]
    assert [each["environment"] for each in replicas] == [app | shared] * 3
