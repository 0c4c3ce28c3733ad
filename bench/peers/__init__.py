"""The peers as they are published, one module each with an ASGI ``app``.

Rule: nothing of ``agui_container`` is imported here.

They run in ``.venv/bench``, which holds the server packages (uvicorn, uvloop, httptools, pydantic) in our versions.
"""
