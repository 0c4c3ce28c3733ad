"""``deploy/kubernetes`` and ``deploy/ecs``: AWS's models take the JSON, and figures agree with the server's settings.

The schemas of Kubernetes are 108 MB: ``make test-infrastructure`` holds the manifests against them.
"""

import io
import json
import re
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import botocore.session  # type: ignore[import-untyped]
import pytest
import yaml
from botocore.validate import validate_parameters  # type: ignore[import-untyped]

from agui_container.settings import Settings
from agui_container.settings_sources import variable_of
from agui_container.telemetry.instruments import OPEN_RUNS
from agui_container.telemetry.prometheus import metric_name
from tests.docs.documents import GUIDES, ROOT
from tests.engine.doubles import Json
from tests.requirements import requirement

KUBERNETES, ECS = ROOT / "deploy" / "kubernetes", ROOT / "deploy" / "ecs"
CALLS = {
    "task-definition.json": ("ecs", "RegisterTaskDefinition"),
    "service.json": ("ecs", "CreateService"),
    "load-balancer.json": ("elbv2", "CreateLoadBalancer"),
    "listener.json": ("elbv2", "CreateListener"),
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
    """The program of the hook ``preStop``."""
    [*_, script] = container()["lifecycle"]["preStop"]["exec"]["command"]
    return str(script)


def attributes(name: str) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in read(ECS / name)["Attributes"]}


@requirement("deploy.elsewhere")
@pytest.mark.parametrize("name", CALLS)
def test_the_models_of_aws_take_the_files_of_ecs(name: str) -> None:
    service, operation = CALLS[name]
    model = botocore.session.get_session().get_service_model(service).operation_model(operation)
    validate_parameters(read(ECS / name), model.input_shape)
    assert {path.name for path in ECS.iterdir()} == CALLS.keys() | POLICIES


@requirement("deploy.elsewhere")
def test_the_guide_makes_all_that_a_task_and_a_service_on_ecs_name() -> None:
    _, _, guide = GUIDES["deploy"].text.partition("\n## ECS\n")
    task = read(ECS / "task-definition.json")
    [container] = task["containerDefinitions"]
    for role in (task["executionRoleArn"], task["taskRoleArn"]):
        assert f"iam create-role --role-name {role.rpartition('/')[2]} " in guide
    assert f"create-log-group --log-group-name {container['logConfiguration']['options']['awslogs-group']}\n" in guide
    assert 0 < guide.index("file://deploy/ecs/listener.json") < guide.index("file://deploy/ecs/service.json")
    for name in {path.name for path in ECS.iterdir()}:
        assert f"file://deploy/ecs/{name}" in guide


@requirement("deploy.elsewhere")
def test_ecs_may_pull_the_image_write_the_log_and_read_the_secrets_of_its_task() -> None:
    statements = read(ECS / "execution-policy.json")["Statement"]
    resources = {action: each["Resource"] for each in statements for action in as_list(each["Action"])}
    [container] = read(ECS / "task-definition.json")["containerDefinitions"]
    repository = container["image"].partition("/")[2].partition(":")[0]
    log = container["logConfiguration"]["options"]["awslogs-group"]
    assert resources["ecr:BatchGetImage"].endswith(f":repository/{repository}")
    assert resources["logs:PutLogEvents"].endswith(f":log-group:{log}:*")
    # AWS appends six characters to the name of a secret.
    secret = resources["secretsmanager:GetSecretValue"].removesuffix("-*")
    assert {each["valueFrom"].rsplit(":", 3)[0] for each in container["secrets"]} == {secret}


def as_list(actions: str | list[str]) -> list[str]:
    return [actions] if isinstance(actions, str) else actions


@requirement("deploy.elsewhere")
def test_every_variable_is_a_setting() -> None:
    known = {variable_of(name) for name in Settings.model_fields}
    [task] = read(ECS / "task-definition.json")["containerDefinitions"]
    used = {each["name"] for each in (*container()["env"], *task["environment"], *task["secrets"])}
    assert used <= known


@requirement("deploy.elsewhere")
def test_open_runs_may_end_before_a_process_is_stopped() -> None:
    longest = Settings().run_timeout
    pod = read(KUBERNETES / "deployment.yaml")["spec"]["template"]["spec"]
    script = drain()
    assert f"time.monotonic() + {longest:.0f}" in script
    assert pod["terminationGracePeriodSeconds"] >= longest + 20
    assert int(attributes("target-group-attributes.json")["deregistration_delay.timeout_seconds"]) == longest


@requirement("deploy.elsewhere")
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


@requirement("deploy.elsewhere")
def test_a_silent_stream_outlives_the_idle_timeout_of_the_load_balancer() -> None:
    idle = int(attributes("load-balancer-attributes.json")["idle_timeout.timeout_seconds"])
    assert idle > 2 * Settings().keepalive


@requirement("deploy.elsewhere")
def test_all_manifests_are_about_the_same_pods() -> None:
    labels = read(KUBERNETES / "deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    assert read(KUBERNETES / "service.yaml")["spec"]["selector"] == labels
    assert read(KUBERNETES / "disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == labels
    assert read(KUBERNETES / "autoscaler.yaml")["spec"]["scaleTargetRef"]["name"] == "agui"
    assert container()["ports"] == [{"name": "http", "containerPort": Settings().port}]


@requirement("deploy.elsewhere")
def test_one_pod_leaves_at_a_time_and_all_probes_ask_for_the_health() -> None:
    assert read(KUBERNETES / "disruption-budget.yaml")["spec"]["maxUnavailable"] == 1
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container()[name]["httpGet"] == {"path": "/ping", "port": "http"}


@requirement("deploy.elsewhere")
def test_replicas_are_scaled_by_the_metric_of_open_runs() -> None:
    [metric] = read(KUBERNETES / "autoscaler.yaml")["spec"]["metrics"]
    assert metric["pods"]["metric"] == {"name": metric_name(OPEN_RUNS)}
    assert {"name": "AGUI_METRICS", "value": "on"} in container()["env"]


@requirement("deploy.elsewhere")
def test_a_pod_is_given_no_more_runs_than_fill_a_core() -> None:
    [metric] = read(KUBERNETES / "autoscaler.yaml")["spec"]["metrics"]
    full, *_ = (row[0] for row in GUIDES["scale"].table("open streams"))
    few, many = map(int, re.findall(r"\d+", full))
    assert few <= int(metric["pods"]["target"]["averageValue"]) <= many
