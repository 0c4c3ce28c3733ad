"""Amazon Bedrock: ConverseStream through boto3, which is imported only when the first call is made.

Reading order: ``model`` (one call, retries) -> ``request`` (prompt to request; ``history``, ``media``, ``names``) ->
``reply`` (stream events to deltas; ``seal`` for reasoning) -> ``failures`` (what went wrong, as one table). All I/O
is in ``client``.
"""

from app.models.bedrock.model import BedrockModel
from app.models.bedrock.options import BedrockOptions, CachePlace, Guardrail

__all__ = ["BedrockModel", "BedrockOptions", "CachePlace", "Guardrail"]
