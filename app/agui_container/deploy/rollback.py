"""Versions of a runtime, and the parameters that make a version like a former one."""

from agui_container.deploy.aws import Aws
from agui_container.deploy.existing import CONTROL, DEFAULT_ENDPOINT, DeployRefused, Existing


def former_version(aws: Aws, existing: Existing, endpoint: str) -> str:
    """Return the version before the one that an endpoint has.

    Only the newest version has one, so that a repeated rollback changes nothing. Raises ``DeployRefused``.
    """
    current = existing.version(endpoint)
    if current is None:
        raise DeployRefused(f"endpoint {endpoint} does not exist, so it cannot go back.")
    if current == "1":
        raise DeployRefused(f"endpoint {endpoint} has version 1, so there is none to go back to.")
    former = str(int(current) - 1)
    if current != existing.version(DEFAULT_ENDPOINT) or (endpoint == DEFAULT_ENDPOINT and is_rollback(aws, existing)):
        raise DeployRefused(
            f"endpoint {endpoint} has version {current}, so it has gone back already, or the newest version never "
            f"reached it. Name the version to go back to, such as --rollback {former}."
        )
    return former


def is_rollback(aws: Aws, existing: Existing) -> bool:
    """Return True if the newest version has the parameters of the last version but one."""
    newest = int(existing.version(DEFAULT_ENDPOINT) or 0)
    before = newest - 2
    if before < 1:
        return False
    versions = [former_parameters(aws, existing, str(number)) for number in (newest, before)]
    first, second = ({**version, "metadataConfiguration": None} for version in versions)
    return first == second


def former_parameters(aws: Aws, existing: Existing, version: str) -> dict[str, object]:
    """Return the parameters of a version, as an update takes them. Raises ``AwsError`` and ``DeployRefused``."""
    if existing.runtime is None:
        raise DeployRefused("the runtime does not exist, so it cannot go back.")
    named = {"agentRuntimeId": existing.runtime["agentRuntimeId"], "agentRuntimeVersion": version}
    former = aws.call(CONTROL, "GetAgentRuntime", named)
    model = aws.client(CONTROL).meta.service_model.operation_model("UpdateAgentRuntime")
    taken = set(model.input_shape.members) - {"agentRuntimeId", "clientToken"}
    return {name: value for name, value in former.items() if name in taken and value not in ("", None)}
