"""gRPC on the server's own port: connections, calls, health and reflection. It knows no protocol.

Rule: only ``handover`` and ``options`` are imported at the start. Everything else is imported by the first HTTP/2
connection.
"""
