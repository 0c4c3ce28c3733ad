"""AG-UI's binary encoding: ``agui.proto``, what protoc made of it, and JSON to its bytes.

Rule: nothing in here is imported before a reader asks for this encoding
(``app/agui_container/transports/formats.py``); those who read JSON pay nothing for it.
"""
