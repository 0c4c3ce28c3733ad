"""Inspection of streams: what is found about whole, cut, foreign and resumed ones."""

import json

import pytest

from agui_container.platform.rules import RuleFindings, RuleState
from agui_container.platform.streams import StreamInspector
from tests.platform.doubles import FINISHED, INPUT, STARTED, frame

RULES = ("invocations.stream", "run.start", "run.order", "run.end")


def found(*pieces: bytes, body: bytes = INPUT, content_type: str = "text/event-stream; charset=utf-8") -> RuleFindings:
    """The findings about a stream that comes in these pieces."""
    findings = RuleFindings()
    inspector = StreamInspector(findings, body, content_type)
    for piece in pieces:
        inspector.feed(piece)
    inspector.finish()
    return findings


def states(findings: RuleFindings) -> set[RuleState]:
    """The states of the rules of streams."""
    return {findings[rule].state for rule in RULES}


def test_a_stream_is_read_however_it_is_cut_into_pieces() -> None:
    whole = b": comment\n\nid: 1\nevent: x\n" + STARTED + FINISHED
    for size in (1, 7, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert states(found(*pieces)) == {RuleState.HELD}


def test_chunks_are_expanded_before_their_order_is_judged() -> None:
    chunk = frame("TEXT_MESSAGE_CHUNK", messageId="m1", delta="hello")
    assert states(found(STARTED, chunk, FINISHED)) == {RuleState.HELD}


@pytest.mark.parametrize(
    ("pieces", "broken"),
    [
        ((STARTED,), {"run.end"}),
        ((FINISHED,), {"run.start", "run.order"}),
        ((STARTED, FINISHED, frame("TEXT_MESSAGE_END", messageId="m1")), {"run.order", "run.end"}),
        ((STARTED, frame("NO_SUCH_EVENT"), FINISHED), {"run.order"}),
        ((STARTED, FINISHED.replace(b"\n\n", b"")), {"invocations.stream", "run.end"}),
        ((STARTED, b"retry\n\n", FINISHED), {"invocations.stream"}),
    ],
)
def test_a_stream_that_breaks_a_rule_is_found(pieces: tuple[bytes, ...], broken: set[str]) -> None:
    assert {*found(*pieces).broken()} == broken


def test_an_error_may_come_first() -> None:
    assert not found(frame("RUN_ERROR", message="no", code="X")).broken()


def test_a_run_that_is_read_again_from_its_middle_is_not_judged_as_a_run_from_its_start() -> None:
    for body in (
        b'{"command": {"type": "attach"}}',
        json.dumps({**json.loads(INPUT), "forwardedProps": {"command": {}}}).encode(),
    ):
        assert not found(frame("TEXT_MESSAGE_CONTENT", messageId="m1", delta="x"), FINISHED, body=body).broken()


def test_frames_of_protobuf_are_left_alone_and_another_type_is_not() -> None:
    assert not found(b"\x00\x01", content_type="application/vnd.ag-ui.event+proto").broken()
    assert {*found(b"{}", content_type="application/json").broken()} == {"invocations.stream"}
