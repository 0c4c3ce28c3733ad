"""Binary encoding of AG-UI: ``agui.proto``, its compiled schema, and the encoder from JSON.

Rule: this package is imported when the first client asks for the encoding
(``app/agui_container/transports/formats.py``), because protobuf takes time and memory.
"""
