"""The agents of the table of cases as LlamaIndex has them. They run in an environment of their own."""

import os

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from llama_index.llms.openai import OpenAI

from tests.agents.frameworks.dice import roll, stumble


async def charge(ctx: Context, sides: int) -> str:
    """Charge."""
    question = InputRequiredEvent(prefix=f"Charge {sides}?")
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_id="charge", waiter_event=question)
    return f"charged {sides}" if answer.response == "yes" else f"said {answer.response}"


MODEL = OpenAI(model="gpt-4o", api_base=os.environ.get("OPENAI_BASE_URL"), max_retries=0)
agent = FunctionAgent(name="dice", tools=[roll, stumble, charge], llm=MODEL)
workflow = AgentWorkflow(
    agents=[FunctionAgent(name="dice", description="Rolls.", tools=[roll, stumble, charge], llm=MODEL)]
)
