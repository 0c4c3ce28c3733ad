"""The agents of the table of cases as LlamaIndex has them. They run in an environment of their own."""

import os
from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput
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


async def bare(input: RunAgentInput) -> AsyncIterator[str]:
    """Say yes to a question, from the state that LlamaIndex makes of the workflow that asks."""
    handler = agent.run(user_msg=input.messages[-1].content)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            state = handler.ctx.to_dict()
            await handler.cancel_run()
            handler = agent.run(ctx=Context.from_dict(agent, state))
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
            break
    try:
        yield str(await handler)
    except ValueError as error:
        yield str(error)
