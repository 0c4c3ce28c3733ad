"""A deployment as it should be, as one value: names, image, environment, role and runtime.

Source of the parameters: ``CreateAgentRuntime`` of bedrock-agentcore-control.
"""

import hashlib
import json
import re
from collections.abc import Mapping

from msgspec import Struct, structs

from agui_container.deploy.options import DeployOptions
from agui_container.deploy.place import AwsPlace
from agui_container.deploy.policies import Policy, read_policy, runtime_policy, runtime_trust
from agui_container.settings import Auth, Settings

OWNER_TAG = "agui-deploy"
"""Tag of all that a deployment makes. Its value is the name of the deployment."""

POLICY_NAME = "runtime"

REGISTRY = re.compile(r"(?P<account>\d{12})\.dkr[.-]ecr\.(?P<region>[a-z0-9-]+)\.")
"""Begin of the URI of an image in ECR."""


class Deployment(Struct, frozen=True):
    """A deployment as it should be.

    Attributes:
        place: account and region.
        options: of the deployment.
        settings: of the server.
        environment: variables of the container.
        image_tag: tag of the image that is built.
    """

    place: AwsPlace
    options: DeployOptions
    settings: Settings
    environment: Mapping[str, str]
    image_tag: str

    @property
    def name(self) -> str:
        """Name of the runtime."""
        return self.options.name

    @property
    def slug(self) -> str:
        """Name of what AWS wants in lower case."""
        return "agui-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def repository(self) -> str:
        """Name of the repository of the image."""
        given = self.options.image.partition("/")[2]
        return re.split(r"[:@]", given)[0] if given else self.slug

    @property
    def repository_arn(self) -> str:
        """ARN of that repository. An image that the options name may be in another account or region."""
        found = REGISTRY.match(self.options.image)
        place = structs.replace(self.place, **found.groupdict()) if found else self.place
        return place.arn("ecr", f"repository/{self.repository}")

    @property
    def image(self) -> str:
        """URI of the image."""
        return self.options.image or f"{self.place.registry}/{self.repository}:{self.image_tag}"

    @property
    def role_name(self) -> str:
        """Name of the execution role that is made. Names of roles hold for all regions."""
        return f"agui-{self.name}-{self.place.region}"

    @property
    def role_arn(self) -> str:
        """ARN of the execution role."""
        return self.options.role or self.place.role(self.role_name)

    @property
    def project(self) -> str:
        """Name of the project that builds the image where there is no Docker."""
        return f"{self.slug}-build"

    @property
    def build_role(self) -> str:
        """Name of the role of that project."""
        return f"agui-{self.name}-{self.place.region}-b"

    @property
    def bucket(self) -> str:
        """Bucket for the source of that project. Names of buckets hold for all accounts, and have 63 characters."""
        digest = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        return f"agui-{digest}-{self.place.account}-{self.place.region}"

    @property
    def tags(self) -> dict[str, str]:
        """Tags of all that is made."""
        return {**self.options.tags, OWNER_TAG: self.name}

    def trust(self) -> Policy:
        """Return who may assume the execution role."""
        return runtime_trust(self.place)

    def policies(self) -> dict[str, Policy]:
        """Return the policies of the execution role by their names."""
        options = self.options
        own = runtime_policy(self.place, self.repository_arn, self.settings, options)
        return {POLICY_NAME: own, **({"own": read_policy(options.policy)} if options.policy else {})}

    def runtime(self) -> dict[str, object]:
        """Return the parameters that the creation and an update of the runtime have in common."""
        options = self.options
        lifecycle = {"idleRuntimeSessionTimeout": options.idle_timeout, "maxLifetime": options.max_lifetime}
        parameters: dict[str, object] = {
            "agentRuntimeArtifact": {"containerConfiguration": {"containerUri": self.image}},
            "roleArn": self.role_arn,
            "networkConfiguration": self._network(),
            "protocolConfiguration": {"serverProtocol": "AGUI"},
            "lifecycleConfiguration": lifecycle,
            "environmentVariables": dict(self.environment),
        }
        if options.platform_version:
            parameters["platformVersion"] = options.platform_version
        if headers := self._headers():
            parameters["requestHeaderConfiguration"] = {"requestHeaderAllowlist": headers}
        if authorizer := self._authorizer():
            parameters["authorizerConfiguration"] = {"customJWTAuthorizer": authorizer}
        return parameters

    def _network(self) -> dict[str, object]:
        if not self.options.subnets:
            return {"networkMode": "PUBLIC"}
        config = {"securityGroups": list(self.options.security_groups), "subnets": list(self.options.subnets)}
        return {"networkMode": "VPC", "networkModeConfig": config}

    def _headers(self) -> list[str]:
        tokens = ["Authorization"] if self.settings.auth is Auth.JWT else []
        return list({name.lower(): name for name in (*tokens, *self.options.headers)}.values())

    def _authorizer(self) -> dict[str, object]:
        settings = self.settings
        if settings.auth is not Auth.JWT:
            return {}
        rules = {
            "allowedAudience": list(settings.auth_allowed_audience),
            "allowedClients": list(settings.auth_allowed_clients),
            "allowedScopes": list(settings.auth_allowed_scopes),
            "customClaims": json.loads(settings.auth_custom_claims),
        }
        named = {name: rule for name, rule in rules.items() if rule}
        return {"discoveryUrl": settings.auth_discovery_url, **named}
