"""Runs in the store: recording, leases, and runs of other replicas."""
