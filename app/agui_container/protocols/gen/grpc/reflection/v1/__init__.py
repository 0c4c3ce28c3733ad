"""Compiled messages of gRPC's standard services."""
