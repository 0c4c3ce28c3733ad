"""Versions of a runtime: which endpoint has which, and the way back to a former one.

Rule: a way back is a change of the template that the stack has, to a version that is named, so it may be repeated.
"""

from copy import deepcopy

from boto3.session import Session  # type: ignore[import-untyped]

from agui_container.aws.deploy.deployment import DEFAULT_ENDPOINT, Template, add_endpoint, endpoints_of, pascal
from agui_container.aws.deploy.stack import DeployRefused, Response

VERSIONED = (
    *("AgentRuntimeArtifact", "AuthorizerConfiguration", "EnvironmentVariables", "LifecycleConfiguration"),
    *("NetworkConfiguration", "PlatformVersion", "ProtocolConfiguration", "RequestHeaderConfiguration"),
)
"""Properties of the runtime that a version has. The role stays that of the stack."""


class Versions:
    """Versions and endpoints of the runtime with a name."""

    def __init__(self, session: Session, name: str) -> None:
        self._control = session.client("bedrock-agentcore-control")
        self._name = name

    def find(self) -> Response:
        """Return the runtime. Raises ``DeployRefused`` if there is none."""
        listed = self._control.get_paginator("list_agent_runtimes").paginate().search("agentRuntimes[]")
        for each in listed:
            if each["agentRuntimeName"] == self._name:
                return dict(self._control.get_agent_runtime(agentRuntimeId=each["agentRuntimeId"]))
        raise DeployRefused(f"runtime {self._name} does not exist. `agui deploy` makes it.")

    def live(self, runtime: Response) -> dict[str, str]:
        """Return the version of each endpoint. One that AWS is still making may have none, and is left out."""
        pages = self._control.get_paginator("list_agent_runtime_endpoints")
        listed = pages.paginate(agentRuntimeId=runtime["agentRuntimeId"]).search("runtimeEndpoints[]")
        versions = {each["name"]: each.get("liveVersion") or each.get("targetVersion") for each in listed}
        known = {name: version for name, version in versions.items() if version}
        return {**known, DEFAULT_ENDPOINT: runtime["agentRuntimeVersion"]}

    def keep_endpoints(self, template: Template, deployed: Template) -> None:
        """Add the endpoints that a stack has to its next template. A new version of the runtime does not move them."""
        endpoints = endpoints_of(deployed)
        if endpoints and template["Resources"]["Runtime"] != deployed["Resources"]["Runtime"]:
            endpoints |= {name: found for name, found in self.live(self.find()).items() if name in endpoints}
        for name, version in endpoints.items():
            add_endpoint(template, name, version)

    def rollback(self, deployed: Template, endpoint: str, version: str) -> Template:
        """Return the template in which an endpoint has a former version again.

        ``DEFAULT`` always has the newest version, so the runtime gets a new one that is like the former one.
        """
        template, runtime_id = deepcopy(deployed), self.find()["agentRuntimeId"]
        former = self._control.get_agent_runtime(agentRuntimeId=runtime_id, agentRuntimeVersion=version)
        if endpoint != DEFAULT_ENDPOINT:
            add_endpoint(template, endpoint, version)
            return template
        found = {name: value for name, value in pascal(former).items() if name in VERSIONED and value}
        found["EnvironmentVariables"] = former.get("environmentVariables", {})
        found["ProtocolConfiguration"] = former["protocolConfiguration"]["serverProtocol"]
        before = template["Resources"]["Runtime"]["Properties"]
        kept = {name: value for name, value in before.items() if name not in VERSIONED}
        template["Resources"]["Runtime"]["Properties"] = kept | found
        self.keep_endpoints(template, deployed)
        return template
