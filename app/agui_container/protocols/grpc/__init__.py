"""HTTP/2 on the server's own port: connections, gRPC calls, health, reflection, HTTP requests. It knows no protocol.

Rule: only ``handover`` and ``options`` are imported at the start. Everything else is imported by the first HTTP/2
connection.
"""
