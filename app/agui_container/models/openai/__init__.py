"""Models behind the chat completions API: OpenAI and every compatible server.

``model`` makes a call and retries it by ``retry_policy``. ``transport`` is the only module that does I/O and knows the
HTTP client. The rest is pure: ``request`` and ``tool_names`` turn a prompt into a request, ``stream_parser`` turns
events into deltas, and ``failures`` turns an error response into an ``AppError``.

Source: the "Chat Completions" section of the OpenAI API reference.
"""

from agui_container.models.openai.failures import RetryPolicy
from agui_container.models.openai.model import OPENAI_URL, OpenAIModel
from agui_container.models.openai.request import OpenAIOptions

__all__ = ["OPENAI_URL", "OpenAIModel", "OpenAIOptions", "RetryPolicy"]
