"""Events on the wire: envelopes, SSE, WebSocket frames, protobuf."""
