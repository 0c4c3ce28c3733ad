"""Versions of a runtime: which endpoint has which, and the way back to a former one.

Rule: a way back is a change of the template that the stack has. The template then names the endpoint that has gone
back, so a repeated rollback without a version changes nothing.
"""

from copy import deepcopy

from agui_container.aws.deploy.aws import Aws, Response
from agui_container.aws.deploy.deployment import DEFAULT_ENDPOINT, Template, add_endpoint, endpoints_of, pascal
from agui_container.aws.deploy.stack import DeployRefused

CONTROL = "bedrock-agentcore-control"
ROLLED_BACK = "RolledBack"
"""Metadata of a template: the endpoint that has gone back."""

VERSIONED = (
    *("AgentRuntimeArtifact", "AuthorizerConfiguration", "EnvironmentVariables", "LifecycleConfiguration"),
    *("NetworkConfiguration", "PlatformVersion", "ProtocolConfiguration", "RequestHeaderConfiguration"),
)
"""Properties of the runtime that a version has. The role stays that of the stack."""


def find_runtime(aws: Aws, name: str) -> Response | None:
    for page in aws.pages(CONTROL, "ListAgentRuntimes", {}):
        for listed in page["agentRuntimes"]:
            if listed["agentRuntimeName"] == name:
                return aws.find(CONTROL, "GetAgentRuntime", {"agentRuntimeId": listed["agentRuntimeId"]})
    return None


def live_versions(aws: Aws, runtime: Response) -> dict[str, str]:
    """Return the version of each endpoint. One that AWS is still making may have none, and is left out."""
    pages = aws.pages(CONTROL, "ListAgentRuntimeEndpoints", {"agentRuntimeId": runtime["agentRuntimeId"]})
    listed = [each for page in pages for each in page["runtimeEndpoints"]]
    versions = {each["name"]: each.get("liveVersion") or each.get("targetVersion") for each in listed}
    known = {name: version for name, version in versions.items() if version}
    return {**known, DEFAULT_ENDPOINT: runtime["agentRuntimeVersion"]}


def keep_endpoints(template: Template, deployed: Template, aws: Aws, name: str) -> None:
    """Add the endpoints that a stack has to its next template. A new version of the runtime does not move them."""
    endpoints = endpoints_of(deployed)
    if endpoints and template["Resources"]["Runtime"] != deployed["Resources"]["Runtime"]:
        runtime = find_runtime(aws, name)
        endpoints |= live_versions(aws, runtime) if runtime else {}
    for endpoint in endpoints_of(deployed):
        add_endpoint(template, endpoint, endpoints[endpoint])


def rollback_template(deployed: Template, aws: Aws, runtime: Response, endpoint: str, version: str | None) -> Template:
    """Return the template in which an endpoint has a former version again.

    ``DEFAULT`` always has the newest version, so the runtime gets a new one that is like the former one. Without a
    version it is the one before.

    Raises:
        DeployRefused: there is no such version or endpoint, or the endpoint has gone back already.
    """
    version = version or _former_version(deployed, live_versions(aws, runtime), endpoint)
    template = {**deepcopy(deployed), "Metadata": {ROLLED_BACK: endpoint}}
    named = {"agentRuntimeId": runtime["agentRuntimeId"], "agentRuntimeVersion": version}
    former = aws.call(CONTROL, "GetAgentRuntime", named)
    if endpoint != DEFAULT_ENDPOINT:
        add_endpoint(template, endpoint, version)
        return template
    found = {name: value for name, value in pascal(former).items() if name in VERSIONED and value}
    found["EnvironmentVariables"] = former.get("environmentVariables", {})
    found["ProtocolConfiguration"] = former["protocolConfiguration"]["serverProtocol"]
    before = template["Resources"]["Runtime"]["Properties"]
    kept = {name: value for name, value in before.items() if name not in VERSIONED}
    template["Resources"]["Runtime"]["Properties"] = kept | found
    keep_endpoints(template, deployed, aws, runtime["agentRuntimeName"])
    return template


def _former_version(deployed: Template, versions: dict[str, str], endpoint: str) -> str:
    current = versions.get(endpoint)
    if current is None or (endpoint != DEFAULT_ENDPOINT and endpoint not in endpoints_of(deployed)):
        raise DeployRefused(f"endpoint {endpoint} does not exist, so it cannot go back.")
    if current == "1":
        raise DeployRefused(f"endpoint {endpoint} has version 1, so there is none to go back to.")
    former = str(int(current) - 1)
    if current != versions[DEFAULT_ENDPOINT] or deployed.get("Metadata", {}).get(ROLLED_BACK) == endpoint:
        raise DeployRefused(
            f"endpoint {endpoint} has version {current}, so it has gone back already, or the newest version never "
            f"reached it. Name the version to go back to, such as --rollback {former}."
        )
    return former
