"""Any history that a client may send, and short forms of its messages. Each provider has an oracle of its own."""

import base64
from typing import Any

from ag_ui import core as ag
from hypothesis import strategies as st

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
IMAGE = ag.ImagePart(source=ag.DataSource(value=PNG, mime_type="image/png"))
FOR_USER = ag.TextPart(text="secret", metadata={"audience": ["user"]})
URL = ag.ImagePart(source=ag.UrlSource(value="http://169.254.169.254/"))


def user(content: Any = "hi") -> ag.UserMessage:  # noqa: ANN401
    return ag.UserMessage(id="u", content=content)


def assistant(text: str | None = None, *calls: str, arguments: str = "{}") -> ag.AssistantMessage:
    made = [ag.ToolCall(id=call, function=ag.FunctionCall(name="now", arguments=arguments)) for call in calls]
    return ag.AssistantMessage(id="a", content=text, tool_calls=made or None)


def result(call: str, content: Any = "done", error: str | None = None, **metadata: Any) -> ag.ToolMessage:  # noqa: ANN401
    return ag.ToolMessage(id="t", tool_call_id=call, content=content, error=error, metadata=metadata or None)


texts = st.sampled_from(["", " ", "a", "b\n"])
ids = st.sampled_from(["1", "2", "3/3", "x" * 70])
names = st.sampled_from(["now", "files/read", "", "n" * 100])
sources = st.sampled_from(
    [
        ag.DataSource(value=PNG, mime_type="image/png"),
        ag.DataSource(value="?", mime_type="x"),
        ag.UrlSource(value="http://x"),
    ]
)
pdf = ag.DocumentPart(
    source=ag.DataSource(value="JVBERg==", mime_type="application/pdf"), metadata={"filename": "a.pdf"}
)
parts = st.one_of(
    texts.map(lambda text: ag.TextPart(text=text)),
    sources.map(lambda source: ag.ImagePart(source=source)),
    sources.map(lambda source: ag.AudioPart(source=source)),
    st.sampled_from([pdf, FOR_USER]),
)
contents = st.one_of(texts, st.lists(parts, max_size=30))
calls = st.builds(
    ag.ToolCall,
    id=ids,
    function=st.builds(ag.FunctionCall, name=names, arguments=st.sampled_from(["", "{}", '{"a":1}', "{", "[]"])),
)


def histories(seals: st.SearchStrategy[str | None]) -> st.SearchStrategy[list[ag.Message]]:
    """Histories whose reasoning has one of these encrypted values. The last message is the user's."""
    message: st.SearchStrategy[ag.Message] = st.one_of(
        st.builds(ag.UserMessage, id=st.just("u"), content=contents),
        st.builds(ag.AssistantMessage, id=st.just("a"), content=texts, tool_calls=st.lists(calls, max_size=3)),
        st.builds(
            ag.ToolMessage,
            id=st.just("t"),
            tool_call_id=ids,
            content=contents,
            error=st.sampled_from([None, "", "e"]),
            metadata=st.sampled_from([None, {"failed": True}]),
        ),
        st.builds(ag.ReasoningMessage, id=st.just("r"), content=texts, encrypted_value=seals),
        st.builds(ag.SystemMessage, id=st.just("s"), content=texts),
    )
    return st.lists(message, max_size=12).map(lambda messages: [*messages, ag.UserMessage(id="last", content="Well?")])
