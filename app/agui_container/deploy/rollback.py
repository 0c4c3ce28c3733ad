"""Versions of a runtime, and the parameters that make a version like a former one."""

from agui_container.deploy.aws import Aws
from agui_container.deploy.existing import CONTROL, DeployRefused, Existing


def former_version(existing: Existing, endpoint: str) -> str:
    """Return the version before the one that an endpoint has. Raises ``DeployRefused`` if there is none."""
    current = existing.version(endpoint)
    if current is None:
        raise DeployRefused(f"endpoint {endpoint} does not exist, so it cannot go back.")
    if current == "1":
        raise DeployRefused(f"endpoint {endpoint} has version 1, so there is none to go back to.")
    return str(int(current) - 1)


def former_parameters(aws: Aws, existing: Existing, version: str) -> dict[str, object]:
    """Return the parameters of a version, as an update takes them. Raises ``AwsError`` and ``DeployRefused``."""
    if existing.runtime is None:
        raise DeployRefused("the runtime does not exist, so it cannot go back.")
    named = {"agentRuntimeId": existing.runtime["agentRuntimeId"], "agentRuntimeVersion": version}
    former = aws.call(CONTROL, "GetAgentRuntime", named)
    model = aws.client(CONTROL).meta.service_model.operation_model("UpdateAgentRuntime")
    taken = set(model.input_shape.members) - {"agentRuntimeId", "clientToken"}
    return {name: value for name, value in former.items() if name in taken and value not in ("", None)}
