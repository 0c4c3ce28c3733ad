"""The tests of what is shipped around the code."""
