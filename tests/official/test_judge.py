"""The judge itself: it rejects, warns and dies as it should, so that its silence elsewhere means something."""

import pytest
from ag_ui.core import (
    CustomEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageEndEvent,
)

from tests.official.judge import Judge

STARTED = RunStartedEvent(thread_id="t", run_id="r")
FINISHED = RunFinishedEvent(thread_id="t", run_id="r")


def test_a_legal_stream_is_clean(judge: Judge) -> None:
    verdict = judge.verify([STARTED, FINISHED], enforce=True, chunks=True)
    assert verdict.clean
    assert verdict.accepted == 2


def test_an_illegal_event_is_rejected_where_it_stands(judge: Judge) -> None:
    verdict = judge.verify([STARTED, TextMessageEndEvent(message_id="m"), FINISHED])
    assert verdict.accepted == 1
    assert "No active text message found with ID 'm'" in str(verdict.error)


def test_an_unknown_field_is_a_finding(judge: Judge) -> None:
    stream = [STARTED, CustomEvent(name="n", value=1, surprise=True), FINISHED]
    assert judge.verify(stream).clean
    verdict = judge.verify(stream, enforce=True)
    assert verdict.error is None
    assert "/surprise" in verdict.printed[0]
    assert not verdict.clean


def test_a_replay_goes_through_the_whole_client(judge: Judge) -> None:
    error = RunErrorEvent(message="no").model_dump(mode="json", by_alias=True)
    turn = judge.replay([error, {"type": "CUSTOM", "name": "late", "value": 1}]).turns[0]
    assert turn.types == ["RUN_ERROR"]
    assert "already errored" in str(turn.error)
    assert turn.failed == turn.error
    assert any("Agent execution failed" in line for line in turn.printed)


def test_a_dead_judge_fails_whoever_asks(judge: Judge) -> None:
    with Judge() as other:
        other.kill()
        with pytest.raises(AssertionError, match=r"died|gone"):
            other.verify([STARTED])
