"""A server process that speaks ConverseStream and thinks as the offline model does."""
