"""An AG-UI server for any Python agent, made for Amazon Bedrock AgentCore Runtime.

The direction of imports is the architecture: docs/architecture.md has it, and the tests hold to it.
"""

__version__ = "0.1.0"
