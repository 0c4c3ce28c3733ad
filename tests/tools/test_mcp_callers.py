"""MCP servers whose headers depend on the caller of a run."""

from collections.abc import Iterator, Mapping

import pytest
from mcp.server.mcpserver import Context, MCPServer
from msgspec.structs import replace

from agui_container.ports import Caller, RunContext, RunInterrupted, ToolError
from agui_container.tools.mcp import McpConfigError, mcp_sources, parse_servers
from agui_container.tools.mcp import headers as module
from tests.agents.agentcore_sdk.identity_service import AUTHORIZE, IdentityService, identity_service
from tests.contexts import run_context
from tests.models.bedrock.doubles import as_nobody
from tests.tools.mcp_demo import serve_app

pytestmark = pytest.mark.wire


def headers_of_caller(ctx: RunContext) -> Mapping[str, str]:
    return {"x-user": ctx.caller.owner}


async def later(ctx: RunContext) -> Mapping[str, str]:
    return {"x-user": f"{ctx.caller.owner} later"}


def wrong(ctx: RunContext) -> object:
    return [ctx.caller.owner]


def context_of(owner: str, workload_token: str | None = None) -> RunContext:
    headers = {"workloadaccesstoken": workload_token} if workload_token else {}
    return replace(run_context(), caller=Caller(owner=owner, request_id="r", headers=headers))


def whoami_server() -> MCPServer:
    server = MCPServer("whoami", log_level="CRITICAL")

    @server.tool()
    async def whoami(ctx: Context) -> str:
        """Say whom a request is for."""
        headers = ctx.headers or {}
        return f"{headers.get('x-user')} {headers.get('authorization')}"

    return server


async def ask(extra: str, *contexts: RunContext) -> list[object]:
    async with serve_app(whoami_server().streamable_http_app(), 0) as port:
        (source,) = mcp_sources(parse_servers(f'[{{"name": "me", "url": "http://127.0.0.1:{port}/mcp", {extra}}}]'))
        try:
            return [await (await source.tools(ctx))[0].call({}, ctx) for ctx in contexts]
        finally:
            await source.aclose()


@pytest.mark.parametrize(("function", "suffix"), [("headers_of_caller", ""), ("later", " later")])
async def test_a_function_makes_the_headers_of_each_caller(function: str, suffix: str) -> None:
    callers = [context_of("ada"), context_of("bob"), context_of("ada")]
    answers = await ask(f'"headers_from": "tests.tools.test_mcp_callers:{function}"', *callers)
    assert answers == [f"{name}{suffix} None" for name in ("ada", "bob", "ada")]


async def test_headers_that_are_no_texts_cost_the_run_the_tools() -> None:
    with pytest.raises(ToolError, match=r"^The headers for the MCP server 'me' could not be made\.$"):
        await ask('"headers_from": "tests.tools.test_mcp_callers:wrong"', context_of("ada"))


def test_a_function_that_does_not_exist_stops_the_start() -> None:
    servers = parse_servers('[{"name": "me", "url": "http://127.0.0.1:1/mcp", "headers_from": "tests.contexts:nope"}]')
    with pytest.raises(McpConfigError, match=r"^me\.headers_from: "):
        mcp_sources(servers)


IDENTITY = '"identity": {"provider": "crm", "scopes": ["read"]}'


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityService]:
    as_nobody(monkeypatch)
    module.identity_client.cache_clear()
    with identity_service() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", service.url)
        yield service
    module.identity_client.cache_clear()


async def test_agentcore_identity_exchanges_the_token_of_each_caller(identity: IdentityService) -> None:
    answers = await ask(IDENTITY, context_of("a", "ada"), context_of("b", "bob"))
    assert answers == [f"None Bearer token of crm for {name}" for name in ("ada", "bob")]
    assert identity.requests[0]["oauth2Flow"] == "ON_BEHALF_OF_TOKEN_EXCHANGE"


async def test_consent_that_a_server_needs_ends_the_run_with_a_link(identity: IdentityService) -> None:
    consent = IDENTITY.replace('["read"]', '["read"], "flow": "USER_FEDERATION"')
    with pytest.raises(RunInterrupted) as interrupted:
        await ask(consent, context_of("a", "ada"))
    assert [each.metadata for each in interrupted.value.interrupts] == [{"url": AUTHORIZE}]
    identity.has_consent = True
    assert await ask(consent, context_of("a", "ada")) == ["None Bearer token of crm for ada"]


async def test_a_request_without_a_workload_token_lacks_the_tools(identity: IdentityService) -> None:
    with pytest.raises(ToolError, match="no workload access token"):
        await ask(IDENTITY, context_of("a"))
