"""The conversation loop, and threads that several protocols share."""
