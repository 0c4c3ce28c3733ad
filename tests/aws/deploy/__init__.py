"""``agui deploy`` against moto's control plane, botocore's models and the local AgentCore."""
