"""An MCP server that this server has and CopilotKit's runtime as well, in the runtime of the example."""

import asyncio
import json
import os

import pytest

from tests.behaviour.test_mcp_apps import PAGE, Shop
from tests.engine.doubles import WAIT, Json
from tests.tools.mcp_demo import serve_app
from tests.web.console.driver import ROOT, serve_page

pytestmark = [pytest.mark.other_language, pytest.mark.asyncio(loop_scope="package")]

SCRIPT = """
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";
import { createServer as loader } from "vite";
const [agentUrl, server, content] = process.argv.slice(1);
const withApps = (code) => code.replace("{ agents,", `{ agents, mcpApps: { servers: [${server}] },`);
const transform = (code, id) => (id.endsWith("/runtime.ts") ? withApps(code) : undefined);
const plugins = [{ name: "apps", enforce: "pre", transform }];
const vite = await loader({
  ...{ configFile: false, logLevel: "silent", plugins },
  ...{ optimizeDeps: { noDiscovery: true }, server: { middlewareMode: true, ws: false } },
});
const { runtimeListener } = await vite.ssrLoadModule("/runtime.ts");
const runtime = createServer(runtimeListener(agentUrl));
await new Promise((resolve) => runtime.listen(0, "127.0.0.1", resolve));
const agent = new HttpAgent({ url: `http://127.0.0.1:${runtime.address().port}/agent/default/run` });
agent.addMessage({ id: "m", role: "user", content });
const apps = [];
const onEvent = ({ event }) => void (event.type === "ACTIVITY_SNAPSHOT" && apps.push(event.content));
await agent.runAgent({}, { onEvent });
for (const app of apps) {
  const request = { ...app, method: "resources/read", params: { uri: app.resourceUri } };
  app.page = (await agent.runAgent({ forwardedProps: { __proxiedMCPRequest: request } })).result;
}
console.log(JSON.stringify(apps));
process.exit();
"""


async def apps(agent: str, server: Json, said: str) -> list[Json]:
    """Return the apps that the runtime sends to a page, with what the page reads for them."""
    node = await asyncio.create_subprocess_exec(
        *("node", "--input-type=module", "-e", SCRIPT, agent, json.dumps(server), said),
        cwd=ROOT / "examples/copilotkit-runtime",
        env={**os.environ, "DO_NOT_TRACK": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WAIT):
        printed, _ = await node.communicate()
    found: list[Json] = json.loads(printed.splitlines()[-1])
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
    """The runtime answers the requests of all apps, so that of this server needs the same name on both sides."""
    shop = Shop()
    async with serve_app(shop.server.streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        with serve_page(AGUI_MCP_SERVERS=json.dumps([{"name": "shop", "url": url, "tool_prefix": prefix}])) as server:
            both = {"type": "http", "url": url, **server_id}
            (app,) = await apps(f"{server.url}invocations", both, f'call {tool} {{"limit": 5}}')
    assert (app["resourceUri"], app.get("serverId"), shop.calls) == (PAGE, owner, ["budget 5"])
    assert ("error" in app["page"]) is (owner == "shop" and not server_id)
