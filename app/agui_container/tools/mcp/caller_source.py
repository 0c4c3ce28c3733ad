"""Tools of an MCP server whose headers depend on the caller: a function's headers, or a token of AgentCore Identity.

Rules:
- The headers are made at the start of each run. Runs with equal headers share one session and one list of tools, so a
  token never reaches a request of another caller.
- The number of sessions is bounded. The least recently used one is closed when it has no request.
- boto3 is imported by the first token. Each token is requested in a thread.

Source: ``GetResourceOauth2Token`` in botocore's service model ``bedrock-agentcore``.
"""

import hashlib
import inspect
import json
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from agui_container.imports import BadReference, import_string
from agui_container.ports import RunContext, RunInterrupted, Tool, ToolError, consent_question
from agui_container.runtime.log_values import format_fields
from agui_container.tools.mcp.servers import HttpServer, IdentityToken, McpConfigError, Server
from agui_container.tools.mcp.source import McpSource
from agui_container.tools.threads import run_in_thread

MAX_SESSIONS = 100
"""Maximum number of sessions of one server."""

CALLBACK_HEADER = "oauth2callbackurl"

MakeHeaders = Callable[[RunContext], Awaitable[Mapping[str, str]]]
"""Function that makes the headers for the caller of a run. Raises ``ToolError`` if there are none."""

_HEADERS = TypeAdapter(dict[str, str])


class CallerSource:
    """Implements ``ports.ToolSource`` with one ``McpSource`` for each set of headers."""

    def __init__(self, server: HttpServer, make_headers: MakeHeaders) -> None:
        self._server = server
        self._make_headers = make_headers
        self._sources: OrderedDict[bytes, McpSource] = OrderedDict()

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self._server.name

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        """Return the tools that the server has for the caller.

        Raises:
            ToolError: there are no headers for the caller, or as ``McpSource.tools``.
            RunInterrupted: the person must consent first.
        """
        headers = await self._make_headers(ctx)
        return await self._source(headers).tools(ctx)

    async def aclose(self) -> None:
        """Close all sessions."""
        while self._sources:
            _, source = self._sources.popitem()
            await source.aclose()

    def _source(self, headers: Mapping[str, str]) -> McpSource:
        key = hashlib.sha256(json.dumps(sorted(headers.items())).encode()).digest()
        source = self._sources.get(key)
        if source is None:
            merged = {**self._server.headers, **headers}
            source = self._sources[key] = McpSource(self._server.model_copy(update={"headers": merged}))
        self._sources.move_to_end(key)
        while len(self._sources) > MAX_SESSIONS:
            _, oldest = self._sources.popitem(last=False)
            oldest.retire()
        return source


def caller_headers(server: Server) -> MakeHeaders | None:
    """Return the function that makes a server's headers for a caller, or None if they are the same for all.

    Raises:
        McpConfigError: ``headers_from`` names no function.
    """
    if not isinstance(server, HttpServer) or not (server.headers_from or server.identity):
        return None
    makers: list[MakeHeaders] = []
    if server.identity:
        makers.append(partial(identity_headers, server.identity))
    if server.headers_from:
        makers.append(partial(function_headers, load_function(server.headers_from, server.name), server.name))

    async def make(ctx: RunContext) -> Mapping[str, str]:
        return {name: value for maker in makers for name, value in (await maker(ctx)).items()}

    return make


def load_function(reference: str, server: str) -> Callable[[RunContext], object]:
    """Import the function that ``headers_from`` names. Raises ``McpConfigError``."""
    try:
        function = import_string(reference)
    except BadReference as error:
        raise McpConfigError(f"{server}.headers_from: {error}") from error
    if not callable(function):
        raise McpConfigError(f"{server}.headers_from: '{reference}' is not a function of (ctx).")
    return function


async def function_headers(function: Callable[[RunContext], object], server: str, ctx: RunContext) -> Mapping[str, str]:
    """Return the headers that a function makes. It may be asynchronous."""
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


class IdentityApi(Protocol):
    """The part of boto3's client that is used here."""

    def get_resource_oauth2_token(self, **request: object) -> Mapping[str, str]:
        """Request a token, or the URL of a consent."""


async def identity_headers(token: IdentityToken, ctx: RunContext) -> Mapping[str, str]:
    """Return ``Authorization`` with a token for the caller of the run.

    Raises:
        ToolError: the request has no workload access token, or AgentCore Identity gives no token.
        RunInterrupted: the person must consent first.
    """
    if ctx.workload_token is None:
        raise ToolError("The request carries no workload access token, so AgentCore Identity gives no token for it.")
    request = token_request(token, ctx)
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


def token_request(token: IdentityToken, ctx: RunContext) -> Mapping[str, object]:
    """Return the parameters of ``GetResourceOauth2Token``."""
    optional = {
        "audiences": list(token.audiences),
        "resources": list(token.resources),
        "resourceOauth2ReturnUrl": ctx.caller.headers.get(CALLBACK_HEADER),
    }
    return {
        "workloadIdentityToken": ctx.workload_token,
        "resourceCredentialProviderName": token.provider,
        "scopes": list(token.scopes),
        "oauth2Flow": token.flow,
        **{name: value for name, value in optional.items() if value},
    }


@cache
def identity_client() -> IdentityApi:
    """Return the client of AgentCore Identity. All calls share it."""
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - imported only if it is used

    # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
    client: IdentityApi = Session(region_name=os.environ.get("AWS_REGION")).client("bedrock-agentcore")
    return client
