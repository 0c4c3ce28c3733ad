"""AG-UI over HTTP with SSE and over WebSocket, and the chat page.

Rule: a transport only translates. It parses a request, starts or attaches to a run, sends envelopes and maps errors. It
imports the engine and ``protocol``, never a plug-in and never another transport.
"""
