"""The agents of the table of cases as LangChain's ``create_agent`` makes them. They have an own environment."""

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from agui_container import langchain_middleware
from tests.agents.frameworks.dice import charge, roll, stumble

MIDDLEWARE = [langchain_middleware(), HumanInTheLoopMiddleware(interrupt_on={"charge": True})]
agent = create_agent(
    ChatOpenAI(model="scripted", max_retries=0),
    tools=[tool(roll), tool(stumble), tool(charge)],
    middleware=MIDDLEWARE,
    checkpointer=InMemorySaver(),
)
