"""Amazon Bedrock: ConverseStream through boto3, which is imported only when the first call is made.

``model`` makes a call and retries it. ``request`` turns a prompt into a request, with ``media`` for its images and
documents. ``stream_parser`` turns the events of the answer into deltas, with ``reasoning_signature`` for reasoning.
``failures`` is the table of errors. ``client`` does all I/O.

Source: the ConverseStream operation in the Amazon Bedrock Runtime API reference.
"""

from agui_container.models.bedrock.model import BedrockModel
from agui_container.models.bedrock.options import BedrockOptions, CachePlace, Guardrail

__all__ = ["BedrockModel", "BedrockOptions", "CachePlace", "Guardrail"]
