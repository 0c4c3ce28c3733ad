"""The agents of the table of cases as Langroid has them. They run in an environment of their own."""

from collections.abc import AsyncIterator
from threading import Event

from ag_ui.core import RunAgentInput
from langroid import ChatAgent, ChatAgentConfig, Task, ToolMessage
from langroid.language_models import OpenAIGPTConfig


class Roll(ToolMessage):
    request: str = "roll"
    purpose: str = "To roll a die."
    sides: int

    def handle(self) -> str:
        return f"rolled {self.sides}"


class Stumble(ToolMessage):
    request: str = "stumble"
    purpose: str = "To fail."
    sides: int

    def handle(self) -> str:
        raise RuntimeError(f"secret {self.sides}")


HELD = Event()
RELEASED = Event()


class Hold(ToolMessage):
    request: str = "hold"
    purpose: str = "To block until another run releases it."

    def handle(self) -> str:
        HELD.set()
        RELEASED.wait()
        return "released"


class Held(ToolMessage):
    request: str = "held"
    purpose: str = "To wait until another run blocks."

    def handle(self) -> str:
        HELD.wait()
        return "it blocks"


class Release(ToolMessage):
    request: str = "release"
    purpose: str = "To release what blocks."

    def handle(self) -> str:
        RELEASED.set()
        return "done"


llm = OpenAIGPTConfig(chat_model="gpt-4o", cache_config=None)
agent = ChatAgent(ChatAgentConfig(llm=llm))
agent.enable_message([Roll, Stumble, Hold, Held, Release])
task = Task(agent, name="dice")


async def bare(input: RunAgentInput) -> AsyncIterator[str]:
    clone = agent.clone()
    answer = await clone.llm_response_async(str(input.messages[-1].content))
    if answer and answer.oai_tool_calls:
        answer = await clone.agent_response_async(answer)
    yield answer.content if answer else "no handler"
