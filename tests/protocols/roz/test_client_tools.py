"""The registry of a roz session's tools, without a connection."""

from agui_container.protocols.roz.run_inputs import ClientTools


def test_texts_without_a_source_are_added_once_also_if_they_begin_as_another_one() -> None:
    tools = ClientTools()
    for text in ("Move slowly.\n\nStop at doors.", "Move", "Move slowly.\n\nStop at doors.", "Stop at doors.", "Move"):
        tools.register("", {}, text)
    assert tools.system_contexts == {"": "Move slowly.\n\nStop at doors.\n\nMove"}
