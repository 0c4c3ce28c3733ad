"""Runs of kontekst over gRPC."""
