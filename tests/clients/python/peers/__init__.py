"""AG-UI servers of others, one module each with an ASGI ``app``, served in the environment of bench/.

Rule: nothing of ``agui_container`` is imported here.
"""
