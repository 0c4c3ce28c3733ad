"""The model's prompt has what clients of roz and kontekst send beside a message, over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from grpclib.client import Channel

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.protocols.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.protocols.gen.roz.v1 import agent_pb2 as roz
from agui_container.settings import Settings
from tests.behaviour.dialogues import SUCCESS, Dialogue
from tests.behaviour.fake_models import FakeOffline
from tests.behaviour.over_grpc import KontekstDialogue, RozDialogue
from tests.behaviour.server import serving
from tests.engine.doubles import Json

SKILL = "---\nname: haiku\ndescription: Three lines.\n---\n\nCount the syllables of each line.\n"


@dataclass
class PromptRecorder:
    service: Engine
    channel: Channel
    model: FakeOffline

    async def roz(self, start: roz.StartSession, message: roz.UserMessage) -> Json:
        dialogue = RozDialogue(self.service, "in-roz", self.channel, {}, reads_events=False)
        async with closed_after(dialogue):
            await dialogue.call.send(roz.SessionRequest(start=start))
            await dialogue.call.send(roz.SessionRequest(user_message=message))
            return await self._prompt(dialogue)

    async def kontekst(self, start: kontekst.StartRunCommand) -> Json:
        dialogue = KontekstDialogue(self.service, "in-kontekst", self.channel, {})
        async with closed_after(dialogue):
            await dialogue.call.send(kontekst.RunCommand(start=start))
            return await self._prompt(dialogue)

    async def _prompt(self, dialogue: Dialogue) -> Json:
        assert (await dialogue.reply()).end == SUCCESS
        (prompt,) = await self.model.prompts()
        return prompt


@asynccontextmanager
async def closed_after(dialogue: Dialogue) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await dialogue.close()


@pytest.fixture
async def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[PromptRecorder]:
    model = FakeOffline()
    monkeypatch.setattr("agui_container.models.offline.OfflineModel", lambda: model.model)
    (tmp_path / "haiku").mkdir()
    (tmp_path / "haiku" / "SKILL.md").write_text(SKILL)
    app = build_app(Settings(skills=str(tmp_path)))
    async with serving(app) as url:
        channel = Channel("127.0.0.1", int(url.rpartition(":")[2]))
        try:
            yield PromptRecorder(app.state.service, channel, model)
        finally:
            channel.close()


def prompt_messages(prompt: Json) -> list[tuple[str, object]]:
    return [(message["role"], message["content"]) for message in prompt["messages"]]


async def test_project_context_history_and_the_context_of_a_turn_are_in_the_prompt(recorder: PromptRecorder) -> None:
    text = roz.ContentPart(text=roz.TextContent(text="an earlier question"))
    start = roz.StartSession(
        project_context=["The robot is called Ada.", "It has two arms."],
        history=[roz.ConversationMessage(role="user", parts=[text])],
        tools=[roz.ToolSchema(name="move", description="Move.")],
    )
    message = roz.UserMessage(content="hello", system_context="Answer briefly.")
    prompt = await recorder.roz(start, message)
    for expected in ("The user's project", "The robot is called Ada.", "It has two arms.", "Answer briefly."):
        assert expected in prompt["system"]
    assert prompt_messages(prompt) == [("user", "an earlier question"), ("user", "hello")]
    assert "move" in prompt["tools"]


async def test_a_working_directory_is_in_the_prompt(recorder: PromptRecorder) -> None:
    prompt = await recorder.kontekst(kontekst.StartRunCommand(prompt="hello", working_dir="/srv/poems"))
    assert "The user's working directory" in prompt["system"]
    assert "/srv/poems" in prompt["system"]
    assert prompt_messages(prompt) == [("user", "hello")]


@pytest.mark.parametrize("prompt", ["", "hello"])
async def test_a_skill_and_its_arguments_are_in_the_prompt(recorder: PromptRecorder, prompt: str) -> None:
    skill = kontekst.SkillInvocation(name="haiku", arguments="about rain")
    seen = await recorder.kontekst(kontekst.StartRunCommand(prompt=prompt, skill=skill))
    assert "Count the syllables of each line." in seen["system"]
    assert prompt_messages(seen) == [*([("user", prompt)] if prompt else []), ("user", "about rain")]
