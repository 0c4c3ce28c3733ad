"""What runs, model calls and tool calls tell of themselves, by OpenTelemetry's API.

Rule: nothing is set up here. Where the process has an SDK (``opentelemetry-instrument`` brings one) it gets spans and
measurements in the words of the GenAI conventions; where it has none, the API does nothing, and next to nothing is done
for it. Nothing of this is on the path of an event. What users and models say is told only where the operator asks for
it. Source: docs/observability.md.
"""

from agui_container.telemetry.export import make_exporter
from agui_container.telemetry.runs import RunTrace
from agui_container.telemetry.spans import Delegation, ModelCall, ToolCall

__all__ = ["Delegation", "ModelCall", "RunTrace", "ToolCall", "make_exporter"]
