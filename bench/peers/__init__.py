"""The peers as they are published, one module each with an ASGI ``app``.

Rule: nothing of ``agui_container`` is imported here.

They run in an environment that `bench.environments` makes, with the packages that serve us in our versions.
"""
