"""The stack of CloudFormation that has a deployment: change sets, their execution, and the end of the stack.

Rules: nothing that somebody else made is changed or deleted, because a stack of ours has ``OWNER_TAG``. Every wait says
what it waits for, and has an end.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

from agui_container.aws.deploy.aws import Aws, Response
from agui_container.aws.deploy.deployment import OWNER_TAG, Deployment, Template

POLL_SECONDS = 5.0
WAIT_SECONDS = 1_800.0
"""Seconds of pauses until a wait is given up. A build may take half an hour, a stack some minutes."""

BROKEN = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED")
"""States of a stack that no update mends."""

NO_CHANGES = ("didn't contain changes", "No updates are to be performed")

Report = Callable[[str], object]


class DeployRefused(Exception):
    """What exists does not allow the request, or AWS could not fulfil it. The message is the line to show."""


class Waiter:
    """Reports what happens, and waits until nothing is in progress. ``pause`` waits for some seconds."""

    def __init__(self, report: Report, pause: Callable[[float], None] = time.sleep) -> None:
        self.report = report
        self._pause = pause

    def settle(self, subject: str, read: Callable[[], str]) -> str:
        """Return a status once nothing is in progress. Raises ``DeployRefused`` if there is no end."""
        left, last = WAIT_SECONDS, ""
        while (status := read()).endswith(("IN_PROGRESS", "PENDING")):
            if status != last:
                self.report(f"waiting for {subject}, which is {status}")
            if left <= 0:
                raise DeployRefused(f"{subject} is {status}, with no end within {WAIT_SECONDS / 60:g} minutes.")
            left, last = left - POLL_SECONDS, status
            self._pause(POLL_SECONDS)
        return status


class Stack:
    def __init__(self, aws: Aws, wanted: Deployment, waiter: Waiter) -> None:
        self._aws = aws
        self._wanted = wanted
        self._waiter = waiter

    def template(self) -> Template | None:
        """Return the template of the stack, or None if there is no stack that can be updated.

        Waits until no change is in progress. Raises ``DeployRefused`` for a stack of others.
        """
        if self._find() in (None, *BROKEN):
            return None
        found: Template = self._call("GetTemplate", StackName=self._wanted.slug)["TemplateBody"]
        return found

    def resources(self) -> list[Response]:
        if self._find() is None:
            return []
        listed = self._call("DescribeStackResources", StackName=self._wanted.slug)["StackResources"]
        return [each for each in listed if each["ResourceStatus"] != "DELETE_COMPLETE"]

    def request(self, template: Template, *, exists: bool) -> dict[str, Any]:
        """Return the parameters of a change set, with the template as JSON."""
        return {
            "StackName": self._wanted.slug,
            "ChangeSetType": "UPDATE" if exists else "CREATE",
            "Capabilities": ["CAPABILITY_IAM"],
            "Tags": self._wanted.tags,
            "TemplateBody": template,
        }

    def plan(self, template: Template) -> Iterator[str]:
        """Yield what would change, in words. AWS makes a change set for that, which is deleted again."""
        if self._find() in (None, *BROKEN):
            yield from (f"+ make {each['Type']} {name}" for name, each in template["Resources"].items())
        elif change_set := self._change_set(template, exists=True):
            self._call("DeleteChangeSet", ChangeSetName=change_set["ChangeSetId"])
            yield from (_line_of(change["ResourceChange"]) for change in change_set["Changes"])

    def apply(self, template: Template) -> bool:
        """Make the stack, or change it. Returns False if nothing differs. Raises ``DeployRefused``."""
        status = self._find()
        if status in BROKEN:
            self.delete()
        exists = status not in (None, *BROKEN)
        change_set = self._change_set(template, exists=exists)
        if change_set is None:
            return False
        purpose = f"{'change' if exists else 'make'} stack {self._wanted.slug}"
        named = {"ChangeSetName": change_set["ChangeSetId"]}
        self._waiter.report(purpose)
        self._call("ExecuteChangeSet", **named)

        def read() -> str:  # the stack keeps its old status until the execution has begun
            found = self._aws.find("cloudformation", "DescribeChangeSet", named) or {"ExecutionStatus": "OBSOLETE"}
            return str(found["ExecutionStatus"]).replace("AVAILABLE", "EXECUTE_PENDING")

        self._waiter.settle(f"the change set of stack {self._wanted.slug}", read)
        self._check(purpose, self._find(), "CREATE_COMPLETE", "UPDATE_COMPLETE")
        return True

    def delete(self) -> None:
        purpose = f"delete stack {self._wanted.slug}"
        self._waiter.report(purpose)
        self._call("DeleteStack", StackName=self._wanted.slug)

        def read() -> str:  # the stack keeps its old status until the deletion has begun
            status = self._status()
            return status if status.startswith("DELETE_") else "DELETE_PENDING"

        self._check(purpose, self._waiter.settle(f"stack {self._wanted.slug}", read), "DELETE_COMPLETE")

    def _check(self, purpose: str, status: str | None, *expected: str) -> None:
        if status not in expected:
            raise DeployRefused(f"cannot {purpose}: {status}: {self._cause() or 'AWS gives no reason'}")

    def _change_set(self, template: Template, *, exists: bool) -> Response | None:
        """Return a change set that may be executed, or None if nothing differs."""
        body = json.dumps(template, ensure_ascii=False, separators=(",", ":"))
        request = {**self.request(template, exists=exists), "TemplateBody": body, "ChangeSetName": f"agui-{uuid4()}"}
        made = self._call("CreateChangeSet", **request)["Id"]
        found: Response = {}

        def read() -> str:
            found.update(self._call("DescribeChangeSet", ChangeSetName=made, IncludePropertyValues=True))
            return str(found["Status"])

        if self._waiter.settle(f"the change set of stack {self._wanted.slug}", read) != "FAILED":
            return found
        self._call("DeleteChangeSet", ChangeSetName=made)
        reason = found.get("StatusReason", "")
        if any(text in reason for text in NO_CHANGES):
            return None
        raise DeployRefused(f"cannot change stack {self._wanted.slug}: {reason}")

    def _cause(self) -> str:
        """Return the first failure since the last request. The newest event comes first."""
        cause = ""
        for event in self._call("DescribeStackEvents", StackName=self._wanted.slug)["StackEvents"]:
            reason = event.get("ResourceStatusReason", "")
            if event["ResourceStatus"].endswith("_FAILED"):
                cause = f"{event['LogicalResourceId']}: {reason}"
            if reason == "User Initiated":
                break
        return cause

    def _find(self) -> str | None:
        """Return the status, or None if there is no stack. Raises ``DeployRefused`` for a stack of others."""
        status = self._waiter.settle(f"stack {self._wanted.slug}", self._status)
        stack = self._describe()
        if stack is None:
            return None
        check_owner(f"stack {self._wanted.slug}", stack.get("Tags", []), self._wanted.name)
        return status

    def _status(self) -> str:
        return str((self._describe() or {"StackStatus": "DELETE_COMPLETE"})["StackStatus"])

    def _describe(self) -> Response | None:
        """Return the stack. One that has only been reviewed has no resources, so it is none."""
        found = self._aws.find("cloudformation", "DescribeStacks", {"StackName": self._wanted.slug})
        stack: Response | None = found["Stacks"][0] if found else None
        return None if stack and stack["StackStatus"] == "REVIEW_IN_PROGRESS" else stack

    def _call(self, operation: str, **parameters: object) -> Response:
        return self._aws.call("cloudformation", operation, parameters)


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
