"""``deploy/kubernetes`` and ``deploy/ecs``: AWS's models take the JSON, and figures agree with the server's settings.

The schemas of Kubernetes are 108 MB: ``make test-infrastructure`` holds the manifests against them.
"""

import io
import json
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import botocore.session  # type: ignore[import-untyped]
import pytest
import yaml
from botocore.validate import validate_parameters  # type: ignore[import-untyped]

from agui_container.settings import Settings
from agui_container.settings_sources import variable_of
from tests.docs.documents import ROOT
from tests.engine.doubles import Json

KUBERNETES, ECS = ROOT / "deploy" / "kubernetes", ROOT / "deploy" / "ecs"
CALLS = {
    "task-definition.json": ("ecs", "RegisterTaskDefinition"),
    "service.json": ("ecs", "CreateService"),
    "load-balancer.json": ("elbv2", "CreateLoadBalancer"),
    "listener.json": ("elbv2", "CreateListener"),
    "grpc-target-group.json": ("elbv2", "CreateTargetGroup"),
    "grpc-rule.json": ("elbv2", "CreateRule"),
    "web-acl.json": ("wafv2", "CreateWebACL"),
    "target-group.json": ("elbv2", "CreateTargetGroup"),
    "target-group-attributes.json": ("elbv2", "ModifyTargetGroupAttributes"),
    "load-balancer-attributes.json": ("elbv2", "ModifyLoadBalancerAttributes"),
}

POLICIES = {"role-trust.json", "execution-policy.json"}


def read(path: Path) -> Json:
    text = path.read_text()
    found: Json = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    return found


def container() -> Json:
    [found] = read(KUBERNETES / "deployment.yaml")["spec"]["template"]["spec"]["containers"]
    task: Json = found
    return task


def drain() -> str:
    [*_, script] = container()["lifecycle"]["preStop"]["exec"]["command"]
    return str(script)


def attributes(name: str) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in read(ECS / name)["Attributes"]}


@pytest.mark.parametrize("name", CALLS)
def test_the_models_of_aws_take_the_files_of_ecs(name: str) -> None:
    service, operation = CALLS[name]
    model = botocore.session.get_session().get_service_model(service).operation_model(operation)
    validate_parameters(read(ECS / name), model.input_shape)
    assert {path.name for path in ECS.iterdir()} == CALLS.keys() | POLICIES


def test_every_variable_is_a_setting() -> None:
    known = {variable_of(name) for name in Settings.model_fields}
    [task] = read(ECS / "task-definition.json")["containerDefinitions"]
    used = {each["name"] for each in (*container()["env"], *task["environment"], *task["secrets"])}
    assert used <= known


def test_open_runs_may_end_before_a_process_is_stopped() -> None:
    longest = Settings().run_timeout
    pod = read(KUBERNETES / "deployment.yaml")["spec"]["template"]["spec"]
    script = drain()
    assert f"time.monotonic() + {longest:.0f}" in script
    assert pod["terminationGracePeriodSeconds"] >= longest + 20
    assert int(attributes("target-group-attributes.json")["deregistration_delay.timeout_seconds"]) == longest


def test_a_pod_that_is_replaced_waits_for_its_open_runs_also_while_its_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unavailable = HTTPError("/ping", 503, "Service Unavailable", Message(), None)
    answers: list[bytes | HTTPError] = [unavailable, b'{"status": "HealthyBusy"}', b'{"status": "Healthy"}']

    def answer(_: str) -> io.BytesIO:
        found = answers.pop(0)
        if isinstance(found, bytes):
            return io.BytesIO(found)
        raise found

    pauses: list[float] = []
    monkeypatch.setattr("urllib.request.urlopen", answer)
    monkeypatch.setattr("time.sleep", pauses.append)
    exec(compile(drain(), "preStop", "exec"), {})  # noqa: S102 - the hook of the manifest
    assert (answers, pauses) == ([], [10, 1, 1])


def test_a_silent_stream_outlives_the_idle_timeout_of_the_load_balancer() -> None:
    idle = int(attributes("load-balancer-attributes.json")["idle_timeout.timeout_seconds"])
    assert idle > 2 * Settings().keepalive
