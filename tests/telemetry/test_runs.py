"""Metrics of runs, and the span of a refused run."""

from contextvars import copy_context

from ag_ui.core import RunErrorEvent, RunFinishedEvent, TokenUsage
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agui_container.telemetry import RunTrace
from tests.contexts import run_context
from tests.requirements import requirement
from tests.telemetry.conftest import Recorded, attributes_of, metric_rows

FINISHED = RunFinishedEvent(thread_id="thread", run_id="run")


def end_run(event: RunFinishedEvent | RunErrorEvent, status: str, seconds: float = 1.5) -> None:
    trace = RunTrace()
    copy_context().run(trace.begin, run_context())
    trace.end(event, status, seconds)


@requirement("trace.measured")
def test_the_duration_of_runs_is_measured_by_status(reader: InMemoryMetricReader) -> None:
    end_run(FINISHED, "finished", 1.5)
    end_run(FINISHED, "finished", 2.5)
    end_run(RunErrorEvent(message="No.", code="MODEL_ERROR"), "error", 0.5)
    assert metric_rows(reader, "agui.run.duration") == [
        ({"agui.run.status": "finished"}, 4.0),
        ({"agui.run.status": "error", "error.type": "MODEL_ERROR"}, 0.5),
    ]


@requirement("trace.measured")
def test_tokens_are_measured_by_model(reader: InMemoryMetricReader) -> None:
    usage = [
        TokenUsage(provider="bedrock", model="claude", input_tokens=10, output_tokens=2),
        TokenUsage(model="own", input_tokens=5),
    ]
    end_run(FINISHED.model_copy(update={"usage": usage}), "finished")
    claude = {"gen_ai.provider.name": "aws.bedrock", "gen_ai.request.model": "claude"}
    own = {"gen_ai.provider.name": "unknown", "gen_ai.request.model": "own"}
    assert metric_rows(reader, "agui.run.tokens") == [
        ({"gen_ai.token.type": "input", **claude}, 10),
        ({"gen_ai.token.type": "output", **claude}, 2),
        ({"gen_ai.token.type": "input", **own}, 5),
    ]


@requirement("trace.measured")
def test_a_run_that_never_began_is_not_measured(reader: InMemoryMetricReader) -> None:
    RunTrace().end(FINISHED, "cancelled", 1.0)
    assert metric_rows(reader, "agui.run.duration") == []


@requirement("trace.ends")
def test_the_span_of_a_run_that_is_not_let_in_ends_with_the_reason(recorded: Recorded) -> None:
    trace = RunTrace()
    copy_context().run(trace.begin, run_context())
    trace.refuse("THREAD_BUSY")
    assert attributes_of(recorded["invoke_agent"])["error.type"] == "THREAD_BUSY"
    assert "agui.run.status" not in attributes_of(recorded["invoke_agent"])
