"""Infrastructure code and manifests against the tools of others: ``make test-infrastructure``."""
