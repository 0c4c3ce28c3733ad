"""An agent of Strands with the server's tools. Run with AGUI_AGENT in the environment of Strands."""

from ag_ui_strands import StrandsAgent

from agui_container import strands_tools
from tests.frameworks.strands_agents import agent

equipped = StrandsAgent(agent=agent, name="equipped", hooks=[strands_tools()])
