"""The store whose threads are in Amazon Bedrock AgentCore Memory. Runs and their events are in this process only.

Rule: an outage of the service never fails a run. A failed read or write is reported as a ``StoreWarning`` and repeated
later. boto3 is imported by the first call.
"""

from agui_container.stores.agentcore.store import AgentCoreStore

__all__ = ["AgentCoreStore"]
