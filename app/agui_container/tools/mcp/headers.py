"""Headers that an MCP server gets for the caller of a run: a function's, or a token of AgentCore Identity.

Rules: the headers are made at the start of each run. boto3 is imported by the first token, and each token is requested
in a thread.

Source: ``GetResourceOauth2Token`` in botocore's service model ``bedrock-agentcore``.
"""

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agui_container.imports import BadReference, import_string
from agui_container.log_values import format_fields
from agui_container.ports import RunContext, RunInterrupted, ToolError, consent_question
from agui_container.tools.mcp.servers import HttpServer, IdentityToken, McpConfigError, Server
from agui_container.tools.threads import run_in_thread

CALLBACK_HEADER = "oauth2callbackurl"

MakeHeaders = Callable[[RunContext], Awaitable[Mapping[str, str]]]
"""Raises ``ToolError`` if there are none for the caller, ``RunInterrupted`` if the person must consent first."""

_HEADERS = TypeAdapter(dict[str, str])


def caller_headers(server: Server) -> MakeHeaders:
    """Return the function that makes a server's headers, none for most servers. Raises ``McpConfigError``."""
    makers: list[MakeHeaders] = []
    if isinstance(server, HttpServer) and server.identity:
        makers.append(partial(identity_headers, server.identity))
    if isinstance(server, HttpServer) and server.headers_from:
        makers.append(partial(function_headers, load_function(server.headers_from, server.name), server.name))

    async def make(ctx: RunContext) -> Mapping[str, str]:
        return {name: value for maker in makers for name, value in (await maker(ctx)).items()}

    return make


def load_function(reference: str, server: str) -> Callable[[RunContext], object]:
    try:
        function = import_string(reference)
    except BadReference as error:
        raise McpConfigError(f"{server}.headers_from: {error}") from error
    if not callable(function):
        raise McpConfigError(f"{server}.headers_from: '{reference}' is not a function of (ctx).")
    return function


async def function_headers(function: Callable[[RunContext], object], server: str, ctx: RunContext) -> Mapping[str, str]:
    made = function(ctx)
    if inspect.isawaitable(made):
        made = await made
    try:
        return _HEADERS.validate_python(made, strict=True)
    except ValidationError:
        fields = {"server": server, "type": type(made).__name__}
        ctx.logger.error("headers of an MCP server are no texts by name %s", format_fields(fields))  # noqa: TRY400 - the value is secret
        raise ToolError(f"The headers for the MCP server '{server}' could not be made.") from None


# --- AgentCore Identity -----------------------------------------------------------------------------------------------


async def identity_headers(token: IdentityToken, ctx: RunContext) -> Mapping[str, str]:
    """Return ``Authorization``. Raises ``ToolError`` without a token, ``RunInterrupted`` for a consent."""
    if ctx.workload_token is None:
        raise ToolError("The request carries no workload access token, so AgentCore Identity gives no token for it.")
    optional = {
        "audiences": list(token.audiences),
        "resources": list(token.resources),
        "resourceOauth2ReturnUrl": ctx.caller.headers.get(CALLBACK_HEADER),
    }
    request = {
        "workloadIdentityToken": ctx.workload_token,
        "resourceCredentialProviderName": token.provider,
        "scopes": list(token.scopes),
        "oauth2Flow": token.flow,
        **{name: value for name, value in optional.items() if value},
    }
    try:
        answer = await run_in_thread(lambda: identity_client().get_resource_oauth2_token(**request))
    except ToolError:
        raise
    except Exception as error:
        fields = {"provider": token.provider, "error": type(error).__name__}
        ctx.logger.warning("token of AgentCore Identity failed %s", format_fields(fields), exc_info=error)
        raise ToolError(f"AgentCore Identity gave no token of '{token.provider}'.") from error
    if "accessToken" in answer:
        return {"Authorization": f"Bearer {answer['accessToken']}"}
    raise RunInterrupted([consent_question(answer["authorizationUrl"])])


@cache
def identity_client() -> Any:  # noqa: ANN401 - boto3 has no types
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - imported only if it is used

    # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
    return Session(region_name=os.environ.get("AWS_REGION")).client("bedrock-agentcore")
