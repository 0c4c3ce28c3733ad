"""ag-ui-strands, served by its own ``create_strands_app``, with the scripted model."""

from ag_ui_strands import StrandsAgent, create_strands_app

from tests.agents.frameworks.strands_agents import ASKS, agent

app = create_strands_app(StrandsAgent(agent, name="scripted", config=ASKS), "/invocations", cors_enabled=False)
