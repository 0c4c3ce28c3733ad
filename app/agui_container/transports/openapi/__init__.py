"""OpenAPI of the HTTP routes, and the page that shows it."""
