"""FastAPI, whose models of OpenAPI are built when they are needed. That saves a fifteenth of a start.

Rule: FastAPI is imported here and nowhere else. pydantic builds the deferred models on first use, so an application on
top of this one can still show its OpenAPI. It is FastAPI's own class, which traces requests by itself
(docs/observability.md): the one that OpenTelemetry's instrumentation puts in its place makes a span for every write,
which is one for every token.
"""

from pydantic import BaseModel

BaseModel.model_config["defer_build"] = True
try:
    from fastapi.applications import FastAPI
finally:
    del BaseModel.model_config["defer_build"]

__all__ = ["FastAPI"]
