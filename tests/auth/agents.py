"""Agents of the tests of authentication, named by ``AGUI_AGENT``."""

import logging
from collections.abc import AsyncIterator, Mapping
from hashlib import sha256

from ag_ui.core import RunAgentInput

from agui_container import RunContext


async def principal_agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[str]:
    principal = ctx.caller.principal
    assert principal is not None
    yield f"{principal.issuer} {principal.subject} {principal.claims['tenant']}"


HEADERS = (
    *("authorization", "workloadaccesstoken", "x-amz-bedrock-agentcore-identity-wat", "oauth2callbackurl"),
    *("x-api-key", "x-amzn-bedrock-agentcore-runtime-custom-key"),
)


def digest(headers: Mapping[str, str]) -> str:
    return sha256("\n".join(headers.get(name, "") for name in HEADERS).encode()).hexdigest()


def show_all_lines() -> None:
    for name in ("", *list(logging.root.manager.loggerDict)):
        logging.getLogger(name).setLevel(logging.DEBUG)


async def secretive_agent(run_input: RunAgentInput, ctx: RunContext) -> AsyncIterator[str]:
    show_all_lines()
    ctx.logger.debug("called by %r in %r", ctx.caller, ctx)
    yield digest(ctx.caller.headers)
    if "fail" in str(run_input.messages[-1]):
        raise ValueError(f"failed for {ctx.caller}")
