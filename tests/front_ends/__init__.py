"""The front ends of examples/ in a real browser, against a real server."""
