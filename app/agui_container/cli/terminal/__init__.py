"""The terminal as a front end: what is shown of a turn, what is asked, and where both are kept."""
