"""Agents of Strands, LangGraph and Pydantic AI, each through its own AG-UI package, judged by the official client."""
