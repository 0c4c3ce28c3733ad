"""The steps from what exists to what should be. Pure: no call is made here.

Rule: a step is planned only if something differs, and every step may be repeated. So a second run continues where an
earlier one has failed.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agui_container.deploy.deployment import Deployment
from agui_container.deploy.existing import CONTROL, DEFAULT_ENDPOINT, Existing
from agui_container.deploy.image_build import SOURCE_KEY, plan_image
from agui_container.deploy.roles import remove_role, role_steps
from agui_container.deploy.source import SourceFolder
from agui_container.deploy.steps import CallStep, Step, WaitStep

RUNTIME_OUTPUTS = {name: name for name in ("agentRuntimeId", "agentRuntimeArn", "agentRuntimeVersion")}
NEW_VERSION = "${agentRuntimeVersion}"
FAILED = ("CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED")
BROKEN = ("CREATE_FAILED", "DELETE_FAILED")
"""States of a runtime that no update mends."""

COMPARED = ("authorizerConfiguration", "requestHeaderConfiguration")
"""Parts of a runtime that exist only if they are wanted."""


def plan_deployment(
    wanted: Deployment, existing: Existing, source: SourceFolder, builder: str, endpoint: str
) -> list[Step]:
    """Return the steps that make, or change, everything. A runtime that was never made completely is made anew."""
    runtime = existing.runtime
    removal: list[Step] = []
    if runtime and runtime["status"] in BROKEN:
        removal = list(remove_all(existing))
        existing = msgspec.structs.replace(existing, runtime=None, endpoints=())
    return [
        *removal,
        *plan_image(wanted, existing, source, builder),
        *([] if wanted.options.role else plan_role(wanted, existing)),
        *plan_runtime(wanted, existing),
        *plan_endpoint(wanted, existing, endpoint, new_version(wanted, existing)),
    ]


def plan_role(wanted: Deployment, existing: Existing) -> Iterator[Step]:
    """Yield the steps of the execution role."""
    yield from role_steps(wanted.role_name, existing.role, wanted.trust(), wanted.policies(), wanted.tags)


def plan_runtime(wanted: Deployment, existing: Existing) -> Iterator[Step]:
    """Yield the steps of the runtime."""
    runtime = existing.runtime
    parameters = wanted.runtime()
    if runtime is None:
        created = {"agentRuntimeName": wanted.name, **parameters, "tags": wanted.tags}
        yield runtime_call(f"make runtime {wanted.name}", "CreateAgentRuntime", created)
        yield runtime_wait("${agentRuntimeId}")
    elif names := differences(wanted, existing):
        purpose = f"update runtime {wanted.name}: {', '.join(names)}"
        yield from update_runtime(runtime["agentRuntimeId"], purpose, parameters)


def update_runtime(runtime_id: str, purpose: str, parameters: Mapping[str, object]) -> Iterator[Step]:
    """Yield the steps of an update. Since 2026-06-30 AgentCore invokes no runtime without version 2 of its metadata."""
    changed = {"agentRuntimeId": runtime_id, **parameters, "metadataConfiguration": {"requireMMDSV2": True}}
    yield runtime_call(purpose, "UpdateAgentRuntime", changed)
    yield runtime_wait(runtime_id)


def runtime_call(purpose: str, operation: str, parameters: Mapping[str, object]) -> CallStep:
    """Return a call whose response names the runtime."""
    return CallStep(
        purpose=purpose, service=CONTROL, operation=operation, parameters=parameters, outputs=RUNTIME_OUTPUTS
    )


def runtime_wait(runtime_id: str) -> WaitStep:
    """Return the wait until a runtime is ready."""
    call = runtime_call("wait until the runtime is ready", "GetAgentRuntime", {"agentRuntimeId": runtime_id})
    return WaitStep(call=call, value="status", done="READY", failed=FAILED, reason="failureReason")


def differences(wanted: Deployment, existing: Existing) -> list[str]:
    """Return the names of the variables and parameters in which the runtime that exists is not the wanted one.

    ``status`` is among them if the last update failed.
    """
    runtime, parameters = existing.runtime or {}, wanted.runtime()
    environment = runtime.get("environmentVariables") or {}
    variables = {name for name, _ in environment.items() ^ wanted.environment.items()}
    extra = {name for name in COMPARED if runtime.get(name) and name not in parameters}
    changed = {name for name, value in parameters.items() if not covers(runtime.get(name), value)}
    failed = {"status"} if runtime.get("status") == "UPDATE_FAILED" else set()
    return sorted((changed | extra | failed) - {"environmentVariables"} | variables)


def covers(found: Any, wanted: Any) -> bool:  # noqa: ANN401 - any part of a response of AWS
    """Return True if a response has all that is wanted. AWS adds its defaults, and keeps no order of lists."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(covers(found.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list):
        as_texts = [sorted(json.dumps(each, sort_keys=True) for each in side or ()) for side in (found, wanted)]
        return as_texts[0] == as_texts[1]
    return bool(found == wanted)


def new_version(wanted: Deployment, existing: Existing) -> str:
    """Return the version that is the newest after the steps of the runtime."""
    runtime = existing.runtime
    is_kept = runtime and runtime["status"] == "READY" and not differences(wanted, existing)
    return str(runtime["agentRuntimeVersion"]) if runtime and is_kept else NEW_VERSION


def plan_endpoint(wanted: Deployment, existing: Existing, name: str, version: str) -> Iterator[Step]:
    """Yield the steps that point an endpoint to a version. AgentCore moves the endpoint ``DEFAULT`` by itself."""
    if name == DEFAULT_ENDPOINT:
        return
    runtime_id = existing.runtime["agentRuntimeId"] if existing.runtime else "${agentRuntimeId}"
    endpoint = existing.endpoint(name)
    if endpoint and endpoint["status"] == "CREATE_FAILED":
        yield from remove_endpoint(runtime_id, name)
        endpoint = None
    parameters = {"agentRuntimeId": runtime_id, "agentRuntimeVersion": version}
    named = {"agentRuntimeId": runtime_id, "endpointName": name}
    if endpoint is None:
        purpose = f"make endpoint {name}"
        created = {**parameters, "name": name, "tags": wanted.tags}
        yield CallStep(purpose=purpose, service=CONTROL, operation="CreateAgentRuntimeEndpoint", parameters=created)
    elif endpoint["status"] != "READY" or endpoint.get("liveVersion") != version:
        purpose = f"point endpoint {name} to {'the new version' if version == NEW_VERSION else f'version {version}'}"
        moved = {**parameters, "endpointName": name}
        yield CallStep(purpose=purpose, service=CONTROL, operation="UpdateAgentRuntimeEndpoint", parameters=moved)
    else:
        return
    purpose = f"wait until endpoint {name} is ready"
    call = CallStep(purpose=purpose, service=CONTROL, operation="GetAgentRuntimeEndpoint", parameters=named)
    yield WaitStep(call=call, value="status", done="READY", failed=FAILED, reason="failureReason")


def plan_rollback(
    wanted: Deployment, existing: Existing, endpoint: str, version: str, former: Mapping[str, object]
) -> list[Step]:
    """Return the steps back to a version.

    Args:
        wanted: the deployment.
        existing: with the runtime.
        endpoint: that goes back. ``DEFAULT`` always has the newest version, so it gets a new one like the old one.
        version: to go back to.
        former: parameters of that version.
    """
    if endpoint != DEFAULT_ENDPOINT:
        return list(plan_endpoint(wanted, existing, endpoint, version))
    runtime = existing.runtime or {}
    return list(update_runtime(runtime["agentRuntimeId"], f"make a version like version {version}", former))


def plan_destruction(wanted: Deployment, existing: Existing) -> list[Step]:
    """Return the steps that delete everything that a deployment has made, in the order in which AWS allows it."""
    steps = list(remove_all(existing))
    for name, role in ((wanted.role_name, existing.role), (wanted.build_role, existing.build_role)):
        if role:
            steps.extend(remove_role(name, role))
    if existing.project:
        steps.append(remove("codebuild", "Project", {"name": wanted.project}))
    if existing.bucket:
        steps.append(remove("s3", "Object", {"Bucket": wanted.bucket, "Key": SOURCE_KEY}))
        steps.append(remove("s3", "Bucket", {"Bucket": wanted.bucket}))
    if existing.repository:
        steps.append(remove("ecr", "Repository", {"repositoryName": wanted.repository, "force": True}))
    return steps


def remove(service: str, kind: str, parameters: Mapping[str, object]) -> CallStep:
    """Return the call that deletes a resource."""
    shown = next(iter(parameters.values()))
    return CallStep(
        purpose=f"delete {kind.lower()} {shown}", service=service, operation=f"Delete{kind}", parameters=parameters
    )


def remove_endpoint(runtime_id: str, name: str) -> Iterator[Step]:
    """Yield the deletion of an endpoint, and the wait for its end."""
    named = {"agentRuntimeId": runtime_id, "endpointName": name}
    yield CallStep(
        purpose=f"delete endpoint {name}", service=CONTROL, operation="DeleteAgentRuntimeEndpoint", parameters=named
    )
    yield gone(f"wait until endpoint {name} is gone", "GetAgentRuntimeEndpoint", named)


def remove_all(existing: Existing) -> Iterator[Step]:
    """Yield the deletion of a runtime and of its endpoints, if there is one."""
    if existing.runtime:
        runtime_id = existing.runtime["agentRuntimeId"]
        for endpoint in existing.endpoints:
            yield from remove_endpoint(runtime_id, endpoint["name"])
        yield from remove_runtime(runtime_id)


def remove_runtime(runtime_id: str) -> Iterator[Step]:
    """Yield the deletion of a runtime, and the wait for its end."""
    named = {"agentRuntimeId": runtime_id}
    yield CallStep(purpose="delete the runtime", service=CONTROL, operation="DeleteAgentRuntime", parameters=named)
    yield gone("wait until the runtime is gone", "GetAgentRuntime", named)


def gone(purpose: str, operation: str, parameters: Mapping[str, object]) -> WaitStep:
    """Return the wait until a resource does not exist."""
    call = CallStep(purpose=purpose, service=CONTROL, operation=operation, parameters=parameters)
    return WaitStep(call=call, value="status", done=None, failed=("DELETE_FAILED",), reason="failureReason")
