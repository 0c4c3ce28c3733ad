"""Authentication by JSON Web Tokens: the issuer's keys, and the rules that a token must meet.

Rule: nothing here is imported unless ``AGUI_AUTH`` is ``jwt``. Sources: AgentCore's ``customJWTAuthorizer``, RFC 7519,
OpenID Connect Discovery 1.0.
"""
