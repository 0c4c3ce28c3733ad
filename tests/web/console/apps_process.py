"""An MCP server with a hostile app and one that asks for things: ``python tests/web/console/apps_process.py``.

Tools are for the model, for apps or for both. The app that asks names a domain.
"""

import sys
from pathlib import Path

from mcp.server.apps import Apps, ResourceCsp
from mcp.server.mcpserver import MCPServer

APPS_SERVER = {"name": "apps", "command": sys.executable, "args": [__file__]}

PAGES = Path(__file__).with_name("apps")


def main() -> None:
    apps = Apps()
    hostile, asking = "ui://apps/hostile.html", "ui://apps/asking.html"
    apps.add_html_resource(hostile, (PAGES / "hostile.html").read_text())
    apps.add_html_resource(
        asking, (PAGES / "asking.html").read_text(), csp=ResourceCsp(connectDomains=["https://api.example"])
    )

    @apps.tool(resource_uri=hostile)
    def attack() -> str:
        return "attacked"

    @apps.tool(resource_uri=asking)
    def show(item: str = "tea") -> str:
        return f"{item} is shown"

    @apps.tool(resource_uri=asking, visibility=["app"])
    def refresh() -> str:
        return "refreshed"

    @apps.tool(resource_uri=asking, visibility=["model"])
    def report() -> str:
        return "reported"

    @apps.tool(resource_uri=asking)
    def buy(item: str) -> str:
        return f"{item} is bought"

    server = MCPServer("apps", log_level="CRITICAL", extensions=[apps])
    server.resource("ui://apps/secret.html", name="secret")(lambda: "secret")
    server.run()


if __name__ == "__main__":
    main()
