"""Sessions of roz over gRPC."""
