"""The agents of the table of cases as LangChain's ``create_agent`` makes them. They have an own environment."""

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from agui_container import langchain_middleware


@tool
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@tool
def stumble(sides: int) -> str:
    """Fail."""
    raise RuntimeError(f"secret {sides}")


@tool
def charge(sides: int) -> str:
    """Charge."""
    return f"charged {sides}"


MIDDLEWARE = [langchain_middleware(), HumanInTheLoopMiddleware(interrupt_on={"charge": True})]
agent = create_agent(
    ChatOpenAI(model="scripted", max_retries=0),
    tools=[roll, stumble, charge],
    middleware=MIDDLEWARE,
    checkpointer=InMemorySaver(),
)
