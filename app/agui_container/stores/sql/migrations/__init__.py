"""The steps that make a database. Each is as it was shipped."""
