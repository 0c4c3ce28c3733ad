"""A server process that speaks both wire protocols and thinks as the offline model does."""
