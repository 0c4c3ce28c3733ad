"""Wire formats of events: envelopes, SSE, WebSocket frames."""
