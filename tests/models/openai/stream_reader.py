"""Deltas as the scenarios write them, and what a call of a model gives."""

from collections.abc import AsyncIterator, Sequence

from ag_ui.core import UserMessage

from agui_container.ports import Delta, MediaDroppedDelta, Prompt, ReasoningDelta, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import AppError

Json = dict[str, object]

PROMPT = Prompt("Be brief.", [UserMessage(id="1", content="hi")])


def delta_as_json(delta: Delta) -> Json:
    if isinstance(delta, TextDelta):
        return {"text": delta.text}
    if isinstance(delta, ReasoningDelta):
        return {"reasoning": delta.text}
    if isinstance(delta, ToolCallDelta):
        return {"call": [delta.index, delta.arguments, delta.name]}
    if isinstance(delta, UsageDelta):
        return {"usage": delta.usage.model_dump(by_alias=True, exclude_none=True)}
    if isinstance(delta, MediaDroppedDelta):
        return {"dropped": delta.part}
    return {"stop": delta.reason.value}  # type: ignore[union-attr]  # these models give no EncryptedDelta


async def read_deltas(deltas: AsyncIterator[Delta]) -> tuple[Sequence[Json], AppError | None]:
    given: list[Json] = []
    try:
        async for delta in deltas:
            given.append(delta_as_json(delta))  # noqa: PERF401 - what came before a failure counts
    except AppError as error:
        return given, error
    return given, None


def text_in(given: Sequence[Json]) -> str:
    return "".join(str(delta.get("text", "")) for delta in given)
