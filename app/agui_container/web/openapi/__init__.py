"""OpenAPI of the HTTP routes."""
