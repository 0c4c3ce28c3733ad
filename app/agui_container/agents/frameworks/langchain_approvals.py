"""Approvals of LangChain's ``HumanInTheLoopMiddleware`` as interrupts of tool calls.

Rule: the middleware asks for all calls of a turn in one interrupt, which one list of decisions answers. Clients get an
interrupt for each call, in this server's form, and answer them in one run.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import Interrupt, ResumeEntry
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ValidationError

from agui_container.agents.gate.approval import call_question
from agui_container.agents.gate.calls import ApprovalAnswer
from agui_container.protocol.errors import validation_error

Json = dict[str, Any]


def requests_of(interrupt: Interrupt) -> Sequence[Json]:
    raw = ((interrupt.metadata or {}).get("langgraph") or {}).get("raw")
    found = raw.get("action_requests") if isinstance(raw, Mapping) else None
    return found if isinstance(found, list) else ()


def split_requests(interrupts: Sequence[Interrupt], messages: Sequence[BaseMessage]) -> list[Interrupt]:
    split = []
    for interrupt in interrupts:
        calls = open_calls(messages)
        for index, request in enumerate(requests_of(interrupt)):
            split.append(question(interrupt, index, request, calls))
        if not requests_of(interrupt):
            split.append(interrupt)
    return split


def open_calls(messages: Sequence[BaseMessage]) -> list[Json]:
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return [dict(call) for call in last.tool_calls] if last else []


def question(interrupt: Interrupt, index: int, request: Json, calls: list[Json]) -> Interrupt:
    """Take the request's call from ``calls``, because a request does not name it."""
    name, arguments = request["name"], request["args"]
    call = next((each for each in calls if (each["name"], each["args"]) == (name, arguments)), None)
    if call is not None:
        calls.remove(call)
    return call_question(call["id"] if call else None, name, json.dumps(arguments), f"{interrupt.id}:{index}")


def join_answers(entries: Sequence[ResumeEntry], interrupts: Sequence[Interrupt]) -> list[ResumeEntry]:
    """Return the entries with one list of decisions for each interrupt. Raises ``AppError`` VALIDATION_ERROR."""
    given = {entry.interrupt_id: entry for entry in entries}
    joined = []
    for interrupt in interrupts:
        requests = requests_of(interrupt)
        parts = [given.pop(f"{interrupt.id}:{index}", None) for index in range(len(requests))]
        answers = [part for part in parts if part is not None]
        if not answers:
            continue
        if len(answers) < len(parts):
            raise validation_error("resume: every call of the turn needs its answer in one run.")
        decisions = [decision(entry, request) for entry, request in zip(answers, requests, strict=True)]
        joined.append(ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload={"decisions": decisions}))
    return [*joined, *given.values()]


def decision(entry: ResumeEntry, request: Json) -> Json:
    if entry.status == "cancelled":
        return {"type": "reject"}
    try:
        answer = ApprovalAnswer.model_validate(entry.payload)
    except ValidationError:
        raise validation_error("resume: payload.approved must be true or false.") from None
    if not answer.approved:
        return {"type": "reject", **({"message": answer.reason} if answer.reason else {})}
    if answer.edited_args is not None:
        return {"type": "edit", "edited_action": {"name": request["name"], "args": answer.edited_args}}
    return {"type": "approve"}
