"""An agent of Strands with the server's tools. Run with AGUI_AGENT in the environment of Strands."""

from ag_ui_strands import StrandsAgent
from strands import Agent

from agui_container import strands_tools
from tests.agents.frameworks.strands_agents import CallingStrandsModel

calling = StrandsAgent(
    agent=Agent(model=CallingStrandsModel(), callback_handler=None), name="calling", hooks=[strands_tools()]
)
