"""The AWS SDK's ``AGUIApp`` with the common agent. As a program it starts the way the SDK documents: ``app.run``."""

import os

from bedrock_agentcore.runtime import AGUIApp

from bench.agents import agent

app = AGUIApp()
app.entrypoint(agent)

if __name__ == "__main__":
    app.run(port=int(os.environ["PORT"]))
