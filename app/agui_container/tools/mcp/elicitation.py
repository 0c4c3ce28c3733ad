"""Questions that a server asks people, as interrupts, and the answers to them as the server reads them.

Rule: an answer is checked against the schema of its question. One that does not fit is asked for again.

Source: "Elicitation" in the Model Context Protocol specification, 2025-11-25 and 2026-07-28.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from ag_ui.core import Interrupt, ResumeEntry
from jsonschema import Draft202012Validator, SchemaError, validators  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult
from msgspec import Struct
from pydantic import ValidationError

from agui_container.ports import Suspension
from agui_container.ports.tool import DECLINE, ELICITATION, NO_ANSWER

UNCHECKED: Final = ("pattern", "patternProperties", "$ref", "$dynamicRef")
"""Keywords of a server's schema that are not checked: its regular expressions could block this process, and its
references name addresses that it chooses."""

Checker = validators.extend(Draft202012Validator, dict.fromkeys(UNCHECKED, lambda *_: ()))


class InvalidAnswer(ValueError):
    """An answer does not follow the schema of its question. The text is for the person."""


class AskedState(Struct, frozen=True):
    """State of a call that waits for answers.

    Attributes:
        arguments: of the call.
        keys: the server's name for each question, by the question's id.
        responses: answers so far, by the server's names.
        request_state: the server's own state, if the call is made again with the answers.
        open_call: id of the call that stays open for the answer, if it is not made again.
    """

    arguments: dict[str, Any]
    keys: dict[str, str] = {}
    responses: dict[str, dict[str, Any]] = {}
    request_state: str | None = None
    open_call: str | None = None


def suspended(questions: Mapping[str, Interrupt], state: AskedState) -> Suspension:
    """Return the suspension of a call by questions, which are given by the server's names for them."""
    keys = {question.id: key for key, question in questions.items()}
    return Suspension(list(questions.values()), state=msgspec.to_builtins(msgspec.structs.replace(state, keys=keys)))


def question_of(params: ElicitRequestParams, tool_call_id: str | None) -> Interrupt:
    question = Interrupt(id=new_id(), reason=ELICITATION, message=params.message, tool_call_id=tool_call_id)
    if isinstance(params, ElicitRequestURLParams):
        return question.model_copy(update={"response_schema": NO_ANSWER, "metadata": {"url": params.url}})
    return question.model_copy(update={"response_schema": params.requested_schema})


def with_answers(suspension: Suspension, entries: Sequence[ResumeEntry]) -> tuple[AskedState, Mapping[str, Interrupt]]:
    """Return the state with the answers, and by the server's names the questions that are still to be answered.

    An answer that is not valid is asked for again, with the reason in front of the question.
    """
    state = msgspec.convert(suspension.state, AskedState)
    responses, still_open = dict(state.responses), dict[str, Interrupt]()
    given = {entry.interrupt_id: entry for entry in entries}
    for question in suspension.interrupts:
        key = state.keys[question.id]
        if question.id not in given:
            still_open[key] = question
            continue
        try:
            responses[key] = answer_of(question, given[question.id]).model_dump(mode="json", exclude_none=True)
        except InvalidAnswer as error:
            message = f"{error} {question.message or ''}".strip()
            still_open[key] = question.model_copy(update={"id": new_id(), "message": message})
    return msgspec.structs.replace(state, responses=responses), still_open


def new_id() -> str:
    return f"question-{uuid.uuid4()}"


def answer_of(question: Interrupt, entry: ResumeEntry) -> ElicitResult:
    if entry.status == "cancelled":
        return ElicitResult(action="cancel")
    schema = question.response_schema or {}
    if entry.payload == DECLINE and "action" not in (schema.get("properties") or {}):
        return ElicitResult(action="decline")
    if question.metadata and "url" in question.metadata:
        return ElicitResult(action="accept")
    check_answer(schema, entry.payload)
    try:
        return ElicitResult.model_validate({"action": "accept", "content": entry.payload})
    except ValidationError:
        raise InvalidAnswer("The answer has values that a form cannot have.") from None


def check_answer(schema: Mapping[str, Any], payload: object) -> None:
    if not isinstance(payload, dict):
        raise InvalidAnswer("The answer is no object.")
    try:
        Checker.check_schema(schema, format_checker=None)
    except SchemaError:
        return  # the server's own fault, which it must bear
    error = best_match(Checker(schema).iter_errors(payload))
    if error is not None:
        where = ".".join(map(str, error.absolute_path))
        raise InvalidAnswer(f"The answer is not valid: {where + ': ' if where else ''}{error.message}.")
