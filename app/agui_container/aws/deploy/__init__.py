"""Deployment to Amazon Bedrock AgentCore Runtime.

``options`` and ``environment`` read what the user wants, and ``deployment`` is that as a template of CloudFormation.
``image`` makes the image, ``stack`` makes change sets and executes them, and ``versions`` goes back to a version.
"""
