"""Questions without content, beside goals and skills, and parts that only name a file."""

import pytest

from agui_container.agents.assistant.assistant import Assistant
from agui_container.agents.assistant.prompt.skills import Skill
from tests.agents.doubles import DONE, ScriptedModel
from tests.behaviour.client import outcome
from tests.behaviour.conftest import WAYS, ConnectModel
from tests.behaviour.conversations import ClientThread
from tests.behaviour.goals import NOTE, custom_values, goals
from tests.conftest import Connect
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

TEA = Skill("tea", "Make tea.", "Boil water.")
BLANK: dict[str, list[Json]] = {
    "no message": [],
    "no text": [{"id": "u", "role": "user", "content": ""}],
    "blank parts": [{"id": "u", "role": "user", "content": [{"type": "text", "text": " "}]}],
}
ASKED: dict[str, tuple[Json, str]] = {
    "goals": (goals(NOTE), "Achieve the goals: "),
    "a skill": ({"skill": {"name": "tea"}}, "Use the skill tea."),
    "a skill with blank arguments": ({"skill": {"name": "tea", "arguments": " "}}, "Use the skill tea."),
}


@requirement("assistant.nothing")
@pytest.mark.parametrize("messages", BLANK.values(), ids=BLANK)
@pytest.mark.parametrize(("props", "request_text"), ASKED.values(), ids=ASKED)
async def test_goals_and_skills_are_something_to_answer_after_a_blank_message(
    connect: Connect, messages: list[Json], props: Json, request_text: str
) -> None:
    model = ScriptedModel([DONE] * 9)
    client = await connect(Assistant(model, skills=(TEA,)))
    events = await client.run(ask(messages=messages, forwardedProps=props))
    assert outcome(events) == "success"
    assert str(model.prompts[0].messages[-1].content).startswith(request_text)


@requirement("input.inline")
@pytest.mark.parametrize("way", [way for way in WAYS if not way.startswith("offline")])
async def test_a_retired_part_with_the_id_of_a_file_is_told_to_model_and_client(connect_model: ConnectModel) -> None:
    first = await connect_model()
    parts = [{"type": "text", "text": "stream 1"}, {"type": "binary", "mimeType": "image/png", "id": "file-1"}]
    thread = ClientThread(first.client, first.model, messages=[{"id": "u", "role": "user", "content": parts}])
    events = await thread.say()
    assert outcome(events) == "success"
    (dropped,) = custom_values(events, "media.dropped")
    assert (dropped["part"], dropped["messageId"]) == ("image", "u")
    assert "[image left out: this model cannot be given it]" in str(await first.model.prompts())
