"""Tool calls of any agent: the tools of a run, their policy and their results."""
