"""Responses for clients from before AG-UI 1.0, which send no ``protocolVersion`` and reject unknown events."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui import core as ag

from agui_container.ports import Item
from agui_container.threads import LARGE_BYTES
from agui_container.web import formats
from tests.conftest import Serve
from tests.engine.doubles import Json, ask
from tests.sse import events_of
from tests.web.responses import post

PNG = ag.DataSource(value="aGk=", mime_type="image/png")
SHOT = [ag.TextPart(text="a "), ag.ImagePart(source=PNG), ag.TextPart(text="shot")]


async def yield_call(_: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.ToolCallChunkEvent(tool_call_id="c", tool_call_name="paint", delta="{}")


async def yield_cancelled_end(_: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.RunFinishedEvent(thread_id="t1", run_id="r1", outcome=ag.RunFinishedCancelledOutcome())


async def pause() -> None:
    """Let the earlier events leave, so that the next one may be pushed alone."""
    for _turn in range(10):
        await asyncio.sleep(0)


async def yield_image_result(_: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.ToolCallChunkEvent(tool_call_id="c", tool_call_name="look", delta="{}")
    await pause()
    yield ag.ToolCallResultEvent(message_id="m", tool_call_id="c", content=SHOT)
    await pause()
    yield ag.MessagesSnapshotEvent(messages=[ag.ToolMessage(id="m", role="tool", tool_call_id="c", content=SHOT)])


async def yield_text(_: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"


def input_without_version(**fields: Any) -> Json:  # noqa: ANN401 - as in JSON
    return {name: value for name, value in ask(**fields).items() if name != "protocolVersion"}


@pytest.mark.parametrize("agent", [yield_call, yield_cancelled_end])
async def test_an_outcome_of_a_later_shape_is_left_out_on_every_transport(serve: Serve, agent: object) -> None:
    for client in await serve(agent):
        new = await client.run(ask())
        old = await client.run(input_without_version())
        assert old[:-1] == new[:-1]
        assert old[-1] == {name: value for name, value in new[-1].items() if name != "outcome"}


async def test_any_other_end_is_as_it_was(serve: Serve) -> None:
    client, _ = await serve(yield_text)
    assert (await post(client, input_without_version())).content == (await post(client, ask())).content


async def test_results_are_text(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    for client in await serve(yield_image_result):
        *_, result, snapshot, _ = await client.run(input_without_version())
        text = "a \n[image left out: image/png]\nshot"
        assert (result["content"], snapshot["messages"][0]["content"]) == (text, text)
    assert "legacy client: media of a tool result removed call=c" in caplog.messages


async def test_the_log_tells_of_a_cancel_that_such_a_client_cannot_see(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client, _ = await serve(yield_cancelled_end)
    await post(client, ask())
    assert "legacy client" not in caplog.text
    await post(client, input_without_version())
    assert "legacy client: outcome removed run=r1 outcome=cancelled" in caplog.messages


async def test_a_replay_is_reduced_for_who_asks_in_an_input_and_whole_for_a_bare_command(serve: Serve) -> None:
    client, _ = await serve(yield_cancelled_end)
    await post(client, ask())
    command = {"type": "attach", "runId": "r1"}
    asked = await post(client, input_without_version(run="r2", forwardedProps={"command": command}))
    bare = await post(client, {"command": command})
    assert "outcome" not in events_of(asked.content)[-1]
    assert events_of(bare.content)[-1]["outcome"] == {"type": "cancelled"}


async def test_large_events_are_reduced_off_the_event_loop(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    names, reduce = set[str](), formats.reduce_event

    def record(data: bytes) -> bytes:
        if len(data) > LARGE_BYTES:
            names.add(threading.current_thread().name)
        return reduce(data)

    async def yield_large(_: ag.RunAgentInput) -> AsyncIterator[Item]:
        content = [ag.TextPart(text=LARGE_BYTES * "x")]
        yield ag.MessagesSnapshotEvent(
            messages=[ag.ToolMessage(id="m", role="tool", tool_call_id="c", content=content)]
        )

    monkeypatch.setattr(formats, "reduce_event", record)
    for client in await serve(yield_large):
        _, snapshot, _ = await client.run(input_without_version())
        assert snapshot["messages"][0]["content"] == LARGE_BYTES * "x"
    assert names == {"AnyIO worker thread"}
