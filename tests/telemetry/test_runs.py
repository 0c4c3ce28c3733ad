"""Metrics of runs, and the span of a refused run."""

from contextvars import copy_context

from ag_ui.core import RunErrorEvent, RunFinishedEvent, TokenUsage
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agui_container.telemetry.spans import RunTrace
from tests.contexts import run_context
from tests.telemetry.conftest import metric_rows

FINISHED = RunFinishedEvent(thread_id="thread", run_id="run")


def end_run(event: RunFinishedEvent | RunErrorEvent, status: str, seconds: float = 1.5) -> None:
    trace = RunTrace()
    copy_context().run(trace.begin, run_context())
    trace.end(event, status, seconds)


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
