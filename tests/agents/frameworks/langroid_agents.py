"""The agents of the table of cases as Langroid has them. They run in an environment of their own."""

from threading import Event

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


RELEASED = Event()


class Hold(ToolMessage):
    request: str = "hold"
    purpose: str = "To block until another run releases it."

    def handle(self) -> str:
        RELEASED.wait()
        return "released"


class Release(ToolMessage):
    request: str = "release"
    purpose: str = "To release what blocks."

    def handle(self) -> str:
        RELEASED.set()
        return "done"


llm = OpenAIGPTConfig(chat_model="gpt-4o", cache_config=None)
agent = ChatAgent(ChatAgentConfig(llm=llm))
agent.enable_message([Roll, Stumble, Hold, Release])
task = Task(agent, name="dice")
