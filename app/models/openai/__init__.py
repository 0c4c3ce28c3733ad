"""Models behind the chat completions API: OpenAI's own and every server that speaks it.

``model`` is the door and retries as ``patience`` says; ``transport`` is the only module that does I/O and knows the
HTTP client. The rest is pure: ``request``, ``parts``, ``pairs`` and ``names`` turn a prompt into a request; ``sse``,
``reading``, ``calls`` and ``usage`` turn bytes into deltas; ``failures`` turns what a server says into an ``AppError``.
"""

from app.models.openai.model import OPENAI_URL, OpenAIModel
from app.models.openai.patience import Patience
from app.models.openai.request import Options

__all__ = ["OPENAI_URL", "OpenAIModel", "Options", "Patience"]
