"""Deployment to Amazon Bedrock AgentCore Runtime: desired state, what exists, and the calls between the two.

``options`` and ``environment`` read what the user wants, and ``deployment`` is that as one value. ``existing`` reads
what AWS has. ``plan`` compares both, without I/O, and returns steps. ``executor`` runs them. ``infrastructure`` writes
the same desired state as CloudFormation, Terraform or CDK.
"""
