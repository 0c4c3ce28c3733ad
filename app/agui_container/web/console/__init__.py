"""The chat page at ``/``: its files, and the routes that serve it.

Rule: the page is static. It is built from ``clients/web`` and committed in ``static``: serving needs no Node.js. The
page uses ``/invocations``, ``/ws`` and ``/ping`` only, so it works where nothing else is passed on.
"""
