"""The process that serves: uvicorn, its protocols, and the order of start and stop."""
