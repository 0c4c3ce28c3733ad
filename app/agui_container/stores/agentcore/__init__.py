"""Messages of threads in Amazon Bedrock AgentCore Memory; everything else as the store in memory keeps it.

Rule: the service is a copy that the process catches up with. What cannot be read or written right now is reported as a
``StoreWarning`` and made up for later; it never ends a run. boto3 is loaded by the first call.
"""

from agui_container.stores.agentcore.store import AgentCoreStore

__all__ = ["AgentCoreStore"]
