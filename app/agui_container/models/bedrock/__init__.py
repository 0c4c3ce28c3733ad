"""Amazon Bedrock: ConverseStream through boto3, which is imported only when the first call is made.

Reading order: ``model`` (one call, retries) -> ``request`` (prompt to request; ``history``, ``media``,
``goal_tool_names``) ->
``reply`` (stream events to deltas; ``seal`` for reasoning) -> ``failures`` (what went wrong, as one table). All I/O
is in ``client``.
"""

from agui_container.models.bedrock.model import BedrockModel
from agui_container.models.bedrock.options import BedrockOptions, CachePlace, Guardrail

__all__ = ["BedrockModel", "BedrockOptions", "CachePlace", "Guardrail"]
