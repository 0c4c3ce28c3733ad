"""Steps of a role: who may assume it, and its policies."""

import json
from collections.abc import Iterator, Mapping

from agui_container.deploy.existing import Role
from agui_container.deploy.policies import Policy
from agui_container.deploy.steps import CallStep


def role_steps(
    name: str, role: Role | None, trust: Policy, policies: Mapping[str, Policy], tags: Mapping[str, str]
) -> Iterator[CallStep]:
    """Yield the calls that make a role, or change what differs. A policy that is not wanted is deleted."""
    document = json.dumps(trust)
    if role is None:
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        yield iam(f"make role {name}", "CreateRole", name, AssumeRolePolicyDocument=document, Tags=listed)
    elif role.trust != trust:
        yield iam(f"change who may assume role {name}", "UpdateAssumeRolePolicy", name, PolicyDocument=document)
    held = role.policies if role else {}
    for key, policy in policies.items():
        if held.get(key) != policy:
            purpose = f"set policy {key} of role {name}"
            yield iam(purpose, "PutRolePolicy", name, PolicyName=key, PolicyDocument=json.dumps(policy))
    for key in sorted(held.keys() - policies.keys()):
        yield remove_policy(name, key)


def remove_role(name: str, role: Role) -> Iterator[CallStep]:
    """Yield the calls that delete a role. IAM deletes none that has policies."""
    yield from (remove_policy(name, key) for key in sorted(role.policies))
    yield iam(f"delete role {name}", "DeleteRole", name)


def remove_policy(name: str, key: str) -> CallStep:
    """Return the call that deletes a policy of a role."""
    return iam(f"delete policy {key} of role {name}", "DeleteRolePolicy", name, PolicyName=key)


def iam(purpose: str, operation: str, role: str, **parameters: object) -> CallStep:
    """Return a call about a role."""
    return CallStep(purpose=purpose, service="iam", operation=operation, parameters={"RoleName": role, **parameters})
