"""Turns of an agent with a model: the model makes the calls that the user's message lists, in order or all at once.

The models of all frameworks follow this script.
"""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from ag_ui.core import ToolMessage, UserMessage

from agui_container.assistant.assistant import Assistant
from agui_container.ports import Delta, Prompt, TextDelta, ToolCallDelta
from agui_container.tools.policy import ToolPolicy
from tests.agents.turns import EFFECTS, ORDERS, POLICY, Step, tools

GATHERED = "all at once: "

EFFECTS_SAID = "say the effects"
"""Message after which a model in another process says the side effects, and forgets them."""

RESULTS_SAID = "say the results"
"""Message after which such a model says the results that it reads in the history."""

CALLS = {name: steps for name, steps in ORDERS.items() if "ask" not in steps}
"""Steps of a turn without a question of the agent's own."""


def command(steps: Sequence[Step], *, is_gathered: bool) -> str:
    return f"{GATHERED if is_gathered else ''}{', '.join(steps)}"


def said_effects() -> str:
    said = ", ".join(EFFECTS)
    EFFECTS.clear()
    return said


def next_calls(said: str, results: int) -> list[tuple[str, str]]:
    """Return names and arguments of the calls that the model makes after so many results; none if it has all."""
    steps = [step.split() for step in said.removeprefix(GATHERED).split(", ")]
    ahead = [(name, json.dumps({"amount": int(amount)})) for name, amount in steps[results:]]
    return ahead if said.startswith(GATHERED) else ahead[:1]


@dataclass
class CallingModel:
    provider: str = "scripts"
    name: str = "calling"

    async def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
        said = next(str(each.content) for each in prompt.messages if isinstance(each, UserMessage))
        calls = next_calls(said, sum(isinstance(each, ToolMessage) for each in prompt.messages))
        for index, (name, arguments) in enumerate(calls):
            yield ToolCallDelta(index, arguments, name)
        if not calls:
            yield TextDelta("done")


def assistant() -> Assistant:
    return Assistant(CallingModel(), tools, policy=ToolPolicy.parse(POLICY))
