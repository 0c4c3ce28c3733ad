"""Models behind the chat completions API: OpenAI and every compatible server.

``transport`` is the only module that does I/O and knows the HTTP client. ``model`` joins it to the rest, which is pure:
``request`` turns a prompt into a request, ``stream_parser`` turns events into deltas, and ``failures`` turns an error
response into a ``ModelFailure``.

Source: the "Chat Completions" section of the OpenAI API reference.
"""

from agui_container.models.openai.model import OPENAI_URL, OpenAIModel
from agui_container.models.openai.request import OpenAIOptions

__all__ = ["OPENAI_URL", "OpenAIModel", "OpenAIOptions"]
