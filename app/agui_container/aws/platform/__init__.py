"""A local data plane of Bedrock AgentCore Runtime: one process per session, behind the platform's own habits.

Rule: a room of its own. Nothing of the server imports it. Sources: the developer guide of AgentCore, botocore's service
model ``bedrock-agentcore``, and measurements of others. docs/platform.md says which of them each habit has.
"""
