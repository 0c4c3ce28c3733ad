"""Code written for the SDK of AWS (``bedrock-agentcore``): its context of a request, its tasks, and OAuth consent.

Rule: the SDK is never imported here. Its context is filled if the agent or a tool has imported it. Only its public
names are used.

Source: ``runtime/context.py``, ``runtime/app.py`` and ``identity/auth.py`` of bedrock-agentcore 1.25.0.
"""

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, NoReturn

from ag_ui.core import RunAgentInput
from msgspec import Struct

from agui_container.agents.frameworks import qualified_classes
from agui_container.ports import Agent, Item, RunContext, RunInterrupted, consent_question

PACKAGE = "bedrock_agentcore"
CONTEXT_MODULE = f"{PACKAGE}.runtime.context"
CALLBACK_HEADER = "oauth2callbackurl"

BUSY = "HealthyBusy"


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
    context = module.BedrockAgentCoreContext
    context.set_request_context(ctx.caller.request_id, ctx.session_id)
    context.set_request_headers(dict(ctx.request_headers))
    if ctx.workload_token:
        context.set_workload_access_token(ctx.workload_token)
    if callback := ctx.caller.headers.get(CALLBACK_HEADER):
        context.set_oauth2_callback_url(callback)


def sdk_tasks_of(modules: Iterable[str]) -> Callable[[], bool]:
    """Return a function that is True while a task of an SDK application in one of the imported modules is open.

    An application counts the tasks of ``add_async_task`` and ``async_task``.
    """
    values = [value for name in modules if name in sys.modules for value in vars(sys.modules[name]).values()]
    apps: dict[int, Any] = {id(value): value for value in values if is_sdk_app(value)}
    if not apps:
        return lambda: False
    return lambda: any(app.get_current_ping_status() == BUSY for app in apps.values())


def is_sdk_app(value: object) -> bool:
    is_of_sdk = any(package == PACKAGE for package, _ in qualified_classes(value))
    return is_of_sdk and callable(getattr(value, "get_current_ping_status", None))


def ask_for_consent(url: str) -> NoReturn:
    """End the run with an interrupt that shows a link to a person. The run with the answer calls the tool again.

    Give it to ``@requires_access_token`` as ``on_auth_url``. The decorator waits for a token of the provider otherwise,
    for ten minutes, and holds the run open.

    Raises:
        RunInterrupted: always.
    """
    raise RunInterrupted([consent_question(url)])
