"""Server-Sent Events, as the HTML standard says."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_client import AgentClientError
from agui_client.sse import MAX_EVENT, EventStreamParser, ServerSentEvent


def parse(*chunks: bytes) -> list[tuple[str, str | None]]:
    """Return data and id of the events in a stream."""
    parser = EventStreamParser()
    return [(event.data, event.id) for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        ("data: a\n\n", [("a", None)]),
        ("data:a\r\n\r\n", [("a", None)]),
        ("data: a\r\rdata: b\r\r", [("a", None), ("b", None)]),
        ("data: a\r\n\ndata: b\n\r\n", [("a", None), ("b", None)]),
        ("\ufeffdata: a\n\n", [("a", None)]),
        ("data: \ufeffa\n\n", [("\ufeffa", None)]),
        (": comment\n\n:\n\ndata: a\n\n", [("a", None)]),
        ("data: a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\n\n", [("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg", None)]),
        ("data: a\ndata: b\n\n", [("a\nb", None)]),
        ("data\n\n", [("", None)]),
        ("data:  a \n\n", [(" a ", None)]),
        ("id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", [("a", "7"), ("b", None), ("c", "")]),
        ("id: 1\0\ndata: a\n\n", [("a", None)]),
        ("event: x\nretry: 3\nfoo: bar\ndata: a\n\n", [("a", None)]),
        ("event: x\n\nid: 1\n\ndata: a\n\n", [("a", None)]),
        ("data: a\n\ndata: cut off", [("a", None)]),
        ("data: a\n\ndata: cut off\n", [("a", None)]),
    ],
)
def test_a_stream_is_read_the_same_wherever_its_chunks_end(stream: str, events: list[tuple[str, str | None]]) -> None:
    encoded = stream.encode()
    assert parse(encoded) == events
    assert parse(*(bytes([byte]) for byte in encoded)) == events
    for cut in range(len(encoded)):
        assert parse(encoded[:cut], encoded[cut:]) == events


def test_an_event_arrives_with_its_last_byte() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"data: a\r\n\r") == [ServerSentEvent("a", None)]
    assert parser.feed(b"\ndata: b\r\r") == [ServerSentEvent("b", None)]


@given(st.text(), st.lists(st.integers(0, 200)))
def test_any_text_comes_through_in_any_chunks(text: str, cuts: list[int]) -> None:
    text = text.encode("utf-8", "replace").decode()
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    encoded = "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
    places = sorted({0, len(encoded), *(cut % (len(encoded) + 1) for cut in cuts)})
    chunks = [encoded[begin:end] for begin, end in pairwise(places)]
    assert parse(*chunks) == [("\n".join(lines), None)]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert parse(b"data: a\xffb\n\n") == [("a\ufffdb", None)]


def test_an_event_without_an_end_is_refused() -> None:
    parser = EventStreamParser()
    parser.feed(b"data: " + b"x" * (MAX_EVENT - 6))
    with pytest.raises(AgentClientError, match="characters"):
        parser.feed(b"x")
