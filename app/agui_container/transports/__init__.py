"""Transports: HTTP with SSE or protobuf, WebSocket, gRPC, Roboto's sessions, and the chat page.

Rule: a transport only translates. It parses a request, starts or attaches to a run, sends envelopes and maps errors. It
imports the engine's interface ``Service`` and ``protocol``, never a plug-in and never another transport.
"""
