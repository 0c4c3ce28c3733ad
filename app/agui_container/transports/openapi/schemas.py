"""Schemas of requests, events and answers.

The models of AG-UI and of the commands make their schemas by themselves. Answers of this server's own routes are JSON
objects without models, so their schemas are written here, and a test validates real answers against them.
"""

from typing import Any

from ag_ui.core import AgentCapabilities, Event, Message, RunAgentInput
from pydantic import TypeAdapter

from agui_container.engine.outcome import Status
from agui_container.ports.records import GoalStatus, ThreadStatus
from agui_container.protocol.commands import COMMAND, Category, Sentiment
from agui_container.transports.formats import EVENT_STREAM

Schema = dict[str, Any]

PREFIX = "#/components/schemas/"
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIME: Schema = {"type": "number", "description": "Unix seconds"}


def ref(name: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"{PREFIX}{name}"}


def array(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def choice(values: Any) -> Schema:  # noqa: ANN401 - an enum's class
    """Return the schema of an enum of strings."""
    return {"type": "string", "enum": [value.value for value in values]}


def record(description: str, required: Schema, **optional: Schema) -> Schema:
    """Return the schema of a JSON object."""
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": {**required, **optional},
    }


def schemas() -> dict[str, Schema]:
    """Return all schemas by name."""
    adapters: dict[str, TypeAdapter[Any]] = {
        "RunAgentInput": TypeAdapter(RunAgentInput),
        "Command": COMMAND,
        "Event": TypeAdapter(Event),
        "Message": TypeAdapter(Message),
        "AgentCapabilities": TypeAdapter(AgentCapabilities),
    }
    made, shared = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()], ref_template=f"{PREFIX}{{model}}"
    )
    models = {**shared["$defs"], **{name: schema for (name, _), schema in made.items() if name not in shared["$defs"]}}
    return {
        **{name: _without_noise(schema) for name, schema in models.items()},
        **_bodies(),
        **_server_answers(),
        **_thread_answers(),
        "Answer": _answer(),
        "Notice": _notice(),
    }


def _without_noise(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """Remove the titles that pydantic derives from names, and the markup of docstrings."""
    if isinstance(schema, list):
        return [_without_noise(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        name: _without_noise(value) for name, value in schema.items() if name != "title" or isinstance(value, dict)
    }
    if isinstance(cleaned.get("description"), str):
        cleaned["description"] = cleaned["description"].replace("``", "`")
    return cleaned


def _bodies() -> dict[str, Schema]:
    return {
        "EventStream": _stream("Events of a run.", "Event"),
        "Refusal": _stream("One event, with the code of the error.", "RunErrorEvent"),
        "CommandBody": record(
            "A command as a body of its own.", {"command": ref("Command")}, threadId=TEXT, protocolVersion=TEXT
        ),
    }


def _stream(description: str, event: str) -> Schema:
    """Return the schema of server-sent events, whose data are JSON objects of a schema."""
    content = {"contentMediaType": EVENT_STREAM, "contentSchema": array(ref(event))}
    return {"type": "string", "description": f"{description} The data of each is a JSON object.", **content}


def _server_answers() -> dict[str, Schema]:
    run = {"runId": TEXT, "threadId": TEXT, "status": choice(Status), "startedAt": TIME}
    return {
        "OpenApi": {"type": "object", "description": "An OpenAPI document, version 3.1."},
        "Health": record(
            "Health of the process.",
            {"status": {"type": "string", "enum": ["Healthy", "HealthyBusy"]}, "time_of_last_update": COUNT},
        ),
        "Run": record(
            "A run.",
            {**run, "seconds": {"type": "number"}, "events": COUNT, "tokens": COUNT},
            readers=COUNT,
            error={"description": "The RUN_ERROR that ended it.", **ref("RunErrorEvent")},
            endedAt=TIME,
        ),
        "RunList": record("Runs, the newest first.", {"runs": array(ref("Run"))}),
    }


def _notice() -> Schema:
    return record(
        "A CUSTOM event that tells the user about a run.",
        {"runId": TEXT, "name": TEXT},
        messageId={**TEXT, "description": "Last message before the event."},
        value={"description": "Any JSON."},
    )


def _answer() -> Schema:
    status = {"type": "string", "enum": ["resolved", "cancelled", "unanswered"]}
    return record(
        "Answer to an interrupt, with its question; or a question that waits no longer and has none.",
        {"runId": TEXT, "interruptId": TEXT, "reason": TEXT, "status": status},
        messageId={**TEXT, "description": "Last message before the answer."},
        message=TEXT,
        toolCallId=TEXT,
        payload={"description": "Any JSON."},
    )


def _thread_answers() -> dict[str, Schema]:
    thread = {"threadId": TEXT, "status": choice(ThreadStatus), "createdAt": TIME, "changedAt": TIME}
    origin = record("Origin of a fork.", {"threadId": TEXT, "messageId": TEXT})
    summary = {"title": TEXT, "activeRunId": TEXT, "forkedFrom": origin}
    contents = {
        "messages": array(ref("Message")),
        "runs": {"type": "object", "description": "Run id by message id.", "additionalProperties": TEXT},
    }
    thread_data = {"state": {"description": "Shared state, any JSON."}, "goals": array(ref("Goal"))}
    feedback = {"messageId": TEXT, "sentiment": choice(Sentiment), "categories": array(choice(Category))}
    times = {"createdAt": TIME, "changedAt": TIME}
    return {
        "Thread": record("A thread without its messages.", thread, **summary),
        "ThreadList": record(
            "Threads, the last changed first.",
            {"threads": array(ref("Thread"))},
            next={**TEXT, "description": "`page` of the next request; absent on the last page."},
        ),
        "ThreadContents": record(
            "A thread. Messages and runs are absent with `messages=false`, and are those of a page with `limit`.",
            {
                **thread,
                "continuationToken": TEXT,
                "feedback": array(ref("Feedback")),
                "waiting": array(ref("Interrupt")),
                "answers": array(ref("Answer")),
                "notices": array(ref("Notice")),
            },
            **summary,
            **contents,
            **thread_data,
            before={**TEXT, "description": "`before` of the next request; absent without earlier messages."},
        ),
        "ThreadDelta": record(
            "A thread and its changed messages. An unchanged order, state or list of goals is absent.",
            {**thread, **contents, "continuationToken": TEXT},
            **summary,
            **thread_data,
            order={**array(TEXT), "description": "Ids of all messages, in order."},
        ),
        "Goal": record(
            "A goal of a turn.",
            {"runId": TEXT, "type": TEXT, "status": choice(GoalStatus), "createdAt": TIME},
            data={"description": "Result, any JSON."},
            concludedAt=TIME,
        ),
        "Feedback": record("Feedback on a message.", {**feedback, **times}, notes=TEXT),
        "StoredFeedback": record("Feedback as it was stored.", {"threadId": TEXT, **feedback, **times}, notes=TEXT),
        "Deleted": record("A deleted thread.", {"threadId": TEXT, "deleted": {"const": True}}),
    }
