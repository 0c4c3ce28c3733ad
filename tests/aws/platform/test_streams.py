"""Judgement of streams: what is found about whole, cut and foreign ones, and about all that is no event."""

import pytest

from agui_container.aws.platform.containers import PingAnswer
from agui_container.aws.platform.inspection import RunJudge, StreamJudge
from agui_container.aws.platform.rules import RuleFindings, RuleState
from tests.aws.platform.doubles import CUSTOM, FINISHED, STARTED, frame

IDS = ("t1", "r1")
RULES = ("invocations.stream", "run.start", "run.order", "run.end")


def found(*pieces: bytes, content_type: str = "text/event-stream; charset=utf-8") -> RuleFindings:
    findings = RuleFindings()
    stream = StreamJudge(findings, RunJudge(findings, IDS), content_type)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return findings


def states(findings: RuleFindings) -> set[RuleState]:
    return {findings[rule].state for rule in RULES}


def test_a_stream_is_read_however_it_is_cut_into_pieces() -> None:
    whole = b": comment\n\nid: 1\nevent: x\n" + STARTED + FINISHED
    for size in (1, 7, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert states(found(*pieces)) == {RuleState.HELD}


SEVERAL_LINES = b'data: {"type": "RUN_STARTED",\ndata:"threadId": "t1",\ndata: "runId": "r1"}\n\n'


@pytest.mark.parametrize(
    "pieces",
    [
        (STARTED, frame("TEXT_MESSAGE_CHUNK", messageId="m1", delta="hello"), FINISHED),
        (SEVERAL_LINES, FINISHED),
        (frame("RUN_ERROR", message="no", code="X"),),
    ],
    ids=["chunks", "several lines of data", "an error at once"],
)
def test_a_stream_that_the_official_client_reads_breaks_no_rule(pieces: tuple[bytes, ...]) -> None:
    assert not found(*pieces).broken


@pytest.mark.parametrize(
    ("pieces", "broken"),
    [
        ((STARTED,), {"run.end"}),
        ((FINISHED,), {"run.start", "run.order"}),
        ((STARTED, FINISHED, frame("TEXT_MESSAGE_END", messageId="m1")), {"run.order", "run.end"}),
        ((STARTED, b'data: {"no": "type"}\n\n', FINISHED), {"run.order"}),
        ((STARTED, b'data: {"type": 5}\n\n', FINISHED), {"run.order"}),
        ((STARTED, FINISHED.replace(b"\n\n", b"")), {"invocations.stream", "run.end"}),
        ((b"",), {"run.end"}),
        ((STARTED.replace(b"t1", b"t2"), FINISHED.replace(b"t1", b"t2")), {"run.start"}),
    ],
)
def test_a_stream_that_breaks_a_rule_is_found(pieces: tuple[bytes, ...], broken: set[str]) -> None:
    assert {*found(*pieces).broken} == broken


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b'data: "a bare string"\n\n', 'data: "a bare string"'),
        (b"data: hello\n\n", "data: hello"),
        (b"data: [DONE]\n\n", "data: [DONE]"),
        (b"data:\n\n", "data:"),
        (b"data: {}\ndata: {}\n\n", "data: {}"),
        (b'data: {"type": NaN}\n\n', "NaN"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "data: [["),
        (b'data: {"a": "\xff"}\n\n', "data: "),
        (b"retry\n\n", "retry"),
        (b"hello\n\n", "hello"),
        (b": a comment\r\n\r\n", "LF LF"),
    ],
)
def test_what_the_official_client_cannot_read_is_a_verdict_with_its_line(text: bytes, shown: str) -> None:
    for pieces in ((STARTED, text, FINISHED), (STARTED, FINISHED, text)):
        findings = found(*pieces)
        assert {*findings.broken} == {"invocations.stream"}
        assert shown in findings["invocations.stream"].detail


def test_lines_that_end_in_cr_lf_are_named_and_their_events_are_judged_all_the_same() -> None:
    whole = (STARTED + FINISHED).replace(b"\n", b"\r\n")
    for size in (1, 7, len(whole)):
        findings = found(*(whole[at : at + size] for at in range(0, len(whole), size)))
        assert {*findings.broken} == {"invocations.stream"}
        assert "CR LF" in findings["invocations.stream"].detail


@pytest.mark.parametrize(
    ("kind", "effect"), [("THINKING_START", "turns it into an event of reasoning"), ("NO_SUCH_EVENT", "drops it")]
)
def test_a_type_that_the_official_client_forgives_is_a_note(kind: str, effect: str) -> None:
    findings = found(STARTED, frame(kind), frame(kind), FINISHED)
    assert not findings.broken
    assert findings.notes == [f"AG-UI 1.0 has no event {kind}: the official client {effect}"]


def test_the_order_of_a_stream_without_an_event_was_not_seen() -> None:
    assert found(b'data: "hello"\n\n')["run.order"].state is RuleState.NOT_SEEN


def test_an_answer_that_is_no_stream_is_found() -> None:
    assert {*found(b"{}", content_type="application/json").broken} == {"invocations.stream"}


@pytest.mark.parametrize(
    ("status", "seconds", "rest", "state"),
    [
        ("HealthyBusy", 0.0, [FINISHED], RuleState.HELD),
        ("Healthy", 1.0, [CUSTOM, FINISHED], RuleState.BROKEN),
        ("Healthy", 1.0, [FINISHED], RuleState.NOT_SEEN),
        ("Healthy", 0.0, [CUSTOM, FINISHED], RuleState.NOT_SEEN),
    ],
    ids=["busy", "a run that goes on", "a run of which only the end is late", "an event that was on its way"],
)
def test_a_container_must_be_busy_at_a_ping_before_an_event_of_its_run(
    monkeypatch: pytest.MonkeyPatch, status: str, seconds: float, rest: list[bytes], state: RuleState
) -> None:
    findings, now = RuleFindings(), 100.0
    run = RunJudge(findings, IDS)
    stream = StreamJudge(findings, run, "text/event-stream")
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream.feed(STARTED)
    run.take_ping(PingAnswer(None, "application/json", status, 1))
    now += seconds
    for piece in rest:
        stream.feed(piece)
    assert findings["ping.busy"].state is state
    assert findings["ping.during-run"].state is RuleState.HELD
