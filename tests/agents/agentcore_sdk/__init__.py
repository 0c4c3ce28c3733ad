"""Code written for AWS's SDK behind this server, with the real package."""
