"""The chat at a terminal: what is shown of a turn, what is asked, and the commands that begin with a slash."""
