"""The stack of CloudFormation that has a deployment: change sets, their execution, and the end of the stack.

Rules: nothing that somebody else made is changed or deleted, because a stack of ours has ``OWNER_TAG``. Every wait says
what it waits for, and has an end.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import jmespath  # type: ignore[import-untyped]
from boto3.session import Session  # type: ignore[import-untyped]
from botocore.exceptions import ClientError, WaiterError  # type: ignore[import-untyped]

from agui_container.aws.deploy.deployment import OWNER_TAG, Deployment, Template

WAIT: Mapping[str, int] = {"Delay": 5, "MaxAttempts": 360}
"""Bound of a wait in botocore's terms: half an hour. A build may take that long, a stack some minutes."""

NO_CHANGES = ("didn't contain changes", "No updates are to be performed")

Response = dict[str, Any]
Report = Callable[[str], object]


class DeployRefused(Exception):
    """What exists does not allow the request, or AWS could not fulfil it. The message is the line to show."""


def open_session(region: str) -> Session:
    """Return boto3's session in a region, or in that of the environment or the profile.

    Raises ``DeployRefused`` if there is none.
    """
    session = Session(region_name=region or os.environ.get("AWS_REGION"))  # which boto3 does not read
    if session.region_name is None:
        raise DeployRefused("there is no region. Set AWS_REGION, or name one by --region or in [deploy].")
    return session


class Stack:
    def __init__(self, session: Session, wanted: Deployment, report: Report) -> None:
        self._client = session.client("cloudformation")
        self._wanted = wanted
        self._report = report

    def find(self) -> Response | None:
        """Return the stack, or None if there is none. Raises ``DeployRefused`` for a stack of others."""
        try:
            [stack] = self._client.describe_stacks(StackName=self._wanted.slug)["Stacks"]
        except ClientError as error:
            if "does not exist" in str(error):  # CloudFormation has no code for it
                return None
            raise
        if stack["StackStatus"] == "REVIEW_IN_PROGRESS":  # only reviewed, so it has no resources
            return None
        check_owner(f"stack {self._wanted.slug}", stack.get("Tags", []), self._wanted.name)
        return dict(stack)

    def template(self) -> Template | None:
        if self.find() is None:
            return None
        return dict(self._client.get_template(StackName=self._wanted.slug)["TemplateBody"])

    def resources(self) -> list[Response]:
        if self.find() is None:
            return []
        listed = self._client.describe_stack_resources(StackName=self._wanted.slug)["StackResources"]
        return [each for each in listed if each["ResourceStatus"] != "DELETE_COMPLETE"]

    def plan(self, template: Template) -> Iterator[str]:
        """Yield what would change, in words. AWS makes a change set for that, which is deleted again."""
        if self.find() is None:
            yield from (f"+ make {each['Type']} {name}" for name, each in template["Resources"].items())
        elif change_set := self._change_set(template, exists=True):
            named = {"ChangeSetName": change_set["Id"]}
            pages = self._client.get_paginator("describe_change_set").paginate(**named, IncludePropertyValues=True)
            yield from map(_line_of, pages.search("Changes[].ResourceChange"))
            self._client.delete_change_set(**named)

    def apply(self, template: Template) -> bool:
        """Make the stack, or change it. Returns False if nothing differs. Raises ``DeployRefused``."""
        exists = self.find() is not None
        change_set = self._change_set(template, exists=exists)
        if change_set is None:
            return False
        self._client.execute_change_set(ChangeSetName=change_set["Id"])
        verb, waiter = ("change", "stack_update_complete") if exists else ("make", "stack_create_complete")
        self._wait(verb, waiter, change_set["StackId"])
        return True

    def delete(self) -> None:
        """Delete the stack, if there is one. Raises ``DeployRefused``."""
        if stack := self.find():
            self._client.delete_stack(StackName=stack["StackId"])
            self._wait("delete", "stack_delete_complete", stack["StackId"])

    def _wait(self, verb: str, waiter: str, stack_id: str) -> None:
        """Wait for the end of a change. Raises ``DeployRefused``."""
        purpose = f"{verb} stack {self._wanted.slug}"
        self._report(purpose)
        try:
            self._client.get_waiter(waiter).wait(StackName=stack_id, WaiterConfig=WAIT)
        except WaiterError as error:
            status = jmespath.search("Stacks[0].StackStatus", error.last_response) or str(error)
            cause = "is not finished after half an hour" if status.endswith("IN_PROGRESS") else self._cause(stack_id)
            raise DeployRefused(f"cannot {purpose}: {status}: {cause}") from None

    def _change_set(self, template: Template, *, exists: bool) -> Response | None:
        """Return a change set that may be executed, or None if nothing differs."""
        body = json.dumps(template, ensure_ascii=False, separators=(",", ":"))
        request = {
            **self._wanted.change_set_request(template, exists=exists),
            "TemplateBody": body,
            "ChangeSetName": f"agui-{uuid4()}",
        }
        made: Response = self._client.create_change_set(**request)
        named = {"ChangeSetName": made["Id"]}
        try:
            self._client.get_waiter("change_set_create_complete").wait(**named, WaiterConfig=WAIT)
        except WaiterError as error:
            self._client.delete_change_set(**named)
            reason = error.last_response.get("StatusReason") or str(error)
            if any(text in reason for text in NO_CHANGES):
                return None
            raise DeployRefused(f"cannot change stack {self._wanted.slug}: {reason}") from None
        return made

    def _cause(self, stack_id: str) -> str:
        """Return the first failure since the last request. The newest event comes first."""
        cause = "AWS gives no reason"
        for event in self._client.describe_stack_events(StackName=stack_id)["StackEvents"]:
            reason = event.get("ResourceStatusReason", "")
            if event["ResourceStatus"].endswith("_FAILED"):
                cause = f"{event['LogicalResourceId']}: {reason}"
            if reason == "User Initiated":
                break
        return cause


def _line_of(change: Response) -> str:
    verb = {"Add": "+ make", "Remove": "- delete"}.get(change["Action"], "~ change")
    targets = [detail["Target"] for detail in change.get("Details", ())]
    paths = {target.get("Path", "").removeprefix("/Properties/") or target.get("Name", "") for target in targets}
    names = ", ".join(sorted(filter(None, paths)))
    return f"{verb} {change['ResourceType']} {change['LogicalResourceId']}{names and f': {names}'}"


def check_owner(resource: str, tags: list[dict[str, str]], name: str) -> None:
    """Check that a deployment made a resource. Raises ``DeployRefused``."""
    if {"Key": OWNER_TAG, "Value": name} not in tags:
        raise DeployRefused(
            f"{resource} exists, and this deployment did not make it, because it has no tag {OWNER_TAG}={name}. "
            "Choose another name with --name, or set that tag."
        )
