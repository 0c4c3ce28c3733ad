"""Random input: bodies, frames and gRPC messages that no client should send."""
