"""Results of functions become text or content parts, and parts reach the client and the model unchanged."""

import pytest
from ag_ui.core import DataSource, DocumentPart, ImagePart, TextPart, ToolCallResultEvent, ToolMessage
from pydantic import BaseModel

from agui_container.assistant.assistant import Assistant
from agui_container.ports import TextDelta, ToolContent
from agui_container.tools.function_tool import content_of, tool
from tests.agents.doubles import ScriptedModel, asks
from tests.contexts import collect_items, of_type, run_context, run_input

TEXT = TextPart(text="Here it is.", metadata={"source": "shop"})
IMAGE = ImagePart(source=DataSource(value="cGl4ZWxz", mime_type="image/png"))
REPORT = DocumentPart(source=DataSource(value="JVBERg==", mime_type="application/pdf"))


class Price(BaseModel):
    cents: int


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("text", "text"),
        (IMAGE, [IMAGE]),
        ([TEXT, IMAGE, REPORT], [TEXT, IMAGE, REPORT]),
        ((TEXT, IMAGE), [TEXT, IMAGE]),
        (["Look:", IMAGE, 3], [TextPart(text="Look:"), IMAGE, TextPart(text="3")]),
        ([], "[]"),
        (["a", "b"], '["a","b"]'),
        (Price(cents=3), '{"cents":3}'),
        ({"a": None}, '{"a":null}'),
        (None, "null"),
    ],
)
def test_a_result_is_text_or_parts(result: object, content: ToolContent) -> None:
    assert content_of(result) == content


async def test_parts_reach_the_client_and_the_model() -> None:
    @tool
    async def look() -> list[object]:
        return [TEXT, IMAGE]

    model = ScriptedModel([asks("look"), [TextDelta("Done.")]])
    items = await collect_items(Assistant(model, [look]).run(run_input("go"), run_context()))
    (event,) = of_type(items, ToolCallResultEvent)
    assert event.content == [TEXT, IMAGE]
    message = model.prompts[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert (message.id, message.content) == (event.message_id, [TEXT, IMAGE])
