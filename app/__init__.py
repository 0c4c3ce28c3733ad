"""An AG-UI server for any Python agent, made for Amazon Bedrock AgentCore Runtime.

The direction of imports is the architecture:
``__main__ -> server -> main -> {edge | agents | models | tools} -> engine -> ports -> core``.
"""

__version__ = "0.1.0"
