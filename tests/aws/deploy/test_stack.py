"""Waits for a stack: they say what they wait for, and have an end."""

import pytest

from agui_container.aws.deploy.stack import DeployRefused, Stack, Waiter
from agui_container.cli.deploy import Work
from tests.aws.deploy.account import Account


@pytest.fixture
def stack(account: type[Account], lines: list[str]) -> Stack:
    overrides = {"image": "public.ecr.aws/a/b:1", "name": "weather"}
    work = Work.named(None, overrides, is_offline=True)
    return Stack(account("eu-central-1"), work.wanted, Waiter(lines.append, lambda _: None))


@pytest.fixture
def lines() -> list[str]:
    return []


def test_a_change_in_progress_is_named_and_given_up(account: type[Account], stack: Stack, lines: list[str]) -> None:
    account.stacks.stacks["agui-weather"] = {"StackStatus": "UPDATE_IN_PROGRESS"}
    with pytest.raises(DeployRefused, match="stack agui-weather is UPDATE_IN_PROGRESS, with no end within 30 minutes"):
        stack.template()
    assert lines == ["waiting for stack agui-weather, which is UPDATE_IN_PROGRESS"]


def test_a_change_that_has_not_begun_yet_is_waited_for(account: type[Account], stack: Stack, lines: list[str]) -> None:
    account.stacks.is_late = True
    resources = {"Role": {"Type": "AWS::IAM::Role", "Properties": {}}}
    assert stack.apply({"Resources": resources})
    assert lines[1:] == ["waiting for the change set of stack agui-weather, which is EXECUTE_PENDING"]
    assert account.stacks.stacks["agui-weather"]["StackStatus"] == "CREATE_COMPLETE"
