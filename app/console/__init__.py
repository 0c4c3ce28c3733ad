"""The chat page at ``/``: what it is made of, and the routes that serve it.

Rule: the page is static. It is built from ``clients/web`` and committed in ``static``, so that serving needs no Node.js.
It talks to the same public routes as every other client.
"""
