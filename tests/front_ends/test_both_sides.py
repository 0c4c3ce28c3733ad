"""An MCP server that this server has and CopilotKit's runtime as well, whose ``mcpApps`` are this middleware."""

import asyncio
import json

import pytest

from tests.behaviour.test_mcp_apps import PAGE, Shop
from tests.engine.doubles import WAIT, Json
from tests.tools.mcp_demo import serve_app
from tests.web.console.driver import ROOT, serve_page

pytestmark = [pytest.mark.other_language, pytest.mark.asyncio(loop_scope="package")]

SCRIPT = """
import { HttpAgent } from "@ag-ui/client";
import { MCPAppsMiddleware } from "@ag-ui/mcp-apps-middleware";
const [agentUrl, server, content] = process.argv.slice(1);
const agent = new HttpAgent({ url: agentUrl });
agent.use(new MCPAppsMiddleware({ mcpServers: [JSON.parse(server)] }));
agent.addMessage({ id: "m", role: "user", content });
const apps = [];
const onEvent = ({ event }) => void (event.type === "ACTIVITY_SNAPSHOT" && apps.push(event.content));
await agent.runAgent({}, { onEvent });
for (const app of apps) {
  const request = { ...app, method: "resources/read", params: { uri: app.resourceUri } };
  app.page = (await agent.runAgent({ forwardedProps: { __proxiedMCPRequest: request } })).result;
}
console.log(JSON.stringify(apps));
"""


async def apps(agent: str, server: Json, said: str) -> list[Json]:
    """Return the apps that a client with the middleware shows, with what it reads as their pages."""
    node = await asyncio.create_subprocess_exec(
        *("node", "--input-type=module", "-e", SCRIPT, agent, json.dumps(server), said),
        cwd=ROOT / "examples/copilotkit-runtime",
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WAIT):
        printed, _ = await node.communicate()
    found: list[Json] = json.loads(printed)
    return found


@pytest.mark.parametrize(
    ("prefix", "server_id", "tool", "owner"),
    [
        ("shop_", {}, "shop_budget", "shop"),
        ("shop_", {}, "budget", None),
        ("", {"serverId": "shop"}, "budget", "shop"),
    ],
)
async def test_a_call_shows_one_app_that_of_the_side_whose_tool_it_was(
    prefix: str, server_id: Json, tool: str, owner: str | None
) -> None:
    """The middleware answers the requests of all apps, so that of this server needs the same name on both sides."""
    shop = Shop()
    async with serve_app(shop.server.streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        with serve_page(AGUI_MCP_SERVERS=json.dumps([{"name": "shop", "url": url, "tool_prefix": prefix}])) as server:
            both = {"type": "http", "url": url, **server_id}
            (app,) = await apps(f"{server.url}invocations", both, f'call {tool} {{"limit": 5}}')
    assert (app["resourceUri"], app.get("serverId"), shop.calls) == (PAGE, owner, ["budget 5"])
    assert ("error" in app["page"]) is (owner == "shop" and not server_id)
