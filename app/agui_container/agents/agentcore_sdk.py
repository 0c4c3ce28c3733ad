"""Code written for the SDK of AWS (``bedrock-agentcore``): its context of a request, its tasks, and OAuth consent.

Rule: the SDK is never imported here. Its context is filled if the agent or a tool has imported it. Only its public
names are used.

Source: ``runtime/context.py``, ``runtime/app.py`` and ``identity/auth.py`` of bedrock-agentcore 1.25.0.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NoReturn, Protocol, runtime_checkable

from ag_ui.core import RunAgentInput
from msgspec import Struct

from agui_container.agents.frameworks import qualified_classes
from agui_container.ports import Agent, Item, RunContext, RunInterrupted, consent_question

PACKAGE = "bedrock_agentcore"
CONTEXT_MODULE = f"{PACKAGE}.runtime.context"
CALLBACK_HEADER = "oauth2callbackurl"

BUSY = "HealthyBusy"


class SdkContext(Protocol):
    """The class ``BedrockAgentCoreContext``. Each method sets a context variable."""

    def set_request_context(self, request_id: str, session_id: str | None = None) -> None:
        """Set the ids of the request."""

    def set_request_headers(self, headers: dict[str, str]) -> None:
        """Set the forwarded headers."""

    def set_workload_access_token(self, token: str) -> None:
        """Set the workload access token."""

    def set_oauth2_callback_url(self, workload_callback_url: str) -> None:
        """Set the URL to which an OAuth provider returns the person."""


class SdkContextAgent(Struct, frozen=True):
    """Implements ``ports.Agent``: an agent whose runs fill ``BedrockAgentCoreContext``."""

    agent: Agent

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        fill_sdk_context(ctx)
        return self.agent.run(input, ctx)


def fill_sdk_context(ctx: RunContext) -> None:
    """Fill ``BedrockAgentCoreContext`` if the SDK has been imported. Tasks and threads of the run inherit it."""
    module = sys.modules.get(CONTEXT_MODULE)
    if module is None:
        return
    context: SdkContext = module.BedrockAgentCoreContext
    context.set_request_context(ctx.caller.request_id, ctx.session_id)
    context.set_request_headers(dict(ctx.request_headers))
    if ctx.workload_token:
        context.set_workload_access_token(ctx.workload_token)
    if callback := ctx.caller.headers.get(CALLBACK_HEADER):
        context.set_oauth2_callback_url(callback)


@runtime_checkable
class TaskTracker(Protocol):
    """A ``BedrockAgentCoreApp``: it counts the tasks of ``add_async_task`` and ``async_task``."""

    def get_current_ping_status(self) -> str:
        """Return the status that the SDK would give to ``/ping``."""


def sdk_tasks_of(modules: Iterable[str]) -> Callable[[], bool]:
    """Return a function that is True while a task of an SDK application in one of the imported modules is open."""
    values = [value for name in modules if name in sys.modules for value in vars(sys.modules[name]).values()]
    trackers = {id(value): value for value in values if is_sdk_object(value) and isinstance(value, TaskTracker)}
    if not trackers:
        return lambda: False
    return lambda: any(tracker.get_current_ping_status() == BUSY for tracker in trackers.values())


def is_sdk_object(value: object) -> bool:
    return any(package == PACKAGE for package, _ in qualified_classes(value))


def ask_for_consent(url: str) -> NoReturn:
    """End the run with an interrupt that shows a link to a person. The run with the answer calls the tool again.

    Give it to ``@requires_access_token`` as ``on_auth_url``. The decorator waits for a token of the provider otherwise,
    for ten minutes, and holds the run open.

    Raises:
        RunInterrupted: always.
    """
    raise RunInterrupted([consent_question(url)])
