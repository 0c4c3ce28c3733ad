"""Models behind the chat completions API: OpenAI's own and every server that speaks it.

``model`` is the door and retries as ``patience`` says; ``transport`` is the only module that does I/O and knows the
HTTP client. The rest is pure: ``request``, ``parts``, ``pairs`` and ``goal_tool_names`` turn a prompt into a request;
``sse_frames``,
``reading``, ``calls`` and ``usage`` turn bytes into deltas; ``failures`` turns what a server says into an ``AppError``.
"""

from agui_container.models.openai.model import OPENAI_URL, OpenAIModel
from agui_container.models.openai.request import OpenAIOptions
from agui_container.models.openai.retry_policy import RetryPolicy

__all__ = ["OPENAI_URL", "OpenAIModel", "OpenAIOptions", "RetryPolicy"]
