"""Forms at the terminal: the lines that a person types become the answer that a schema asks for."""

from io import StringIO

import pytest
from ag_ui.core import Interrupt
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.plain_text import PlainTextOutput
from rich.console import Console

from agui_client import DECLINE, Declined
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.questions import fill
from agui_container.cli.terminal.screen import Screen

FIELDS = {
    "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
    "colour": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"], "default": "b"},
    "extras": {
        "type": "array",
        "items": {"anyOf": [{"const": "m", "title": "Milk"}, {"const": "h", "title": "Honey"}]},
    },
    "gift": {"type": "boolean", "default": True},
    "count": {"type": "integer", "minimum": 1},
    "note": {"type": "string", "title": "Note\x1b[2J"},
}
FORM = Interrupt(
    id="q",
    reason="elicitation",
    message="Which tea?",
    response_schema={"type": "object", "properties": FIELDS, "required": ["size", "extras", "count"]},
)
FEW = {"size": "s", "colour": "b", "extras": ["m"], "gift": True, "count": 2}
"""The answer of somebody who has typed a count of 0 at first."""

ACTION = FORM.model_copy(update={"response_schema": {"type": "object", "properties": {"action": {"type": "string"}}}})
LINK = Interrupt(
    id="q",
    reason="elicitation",
    message="Sign in.",
    response_schema={"type": "object", "properties": {}},
    metadata={"url": "https://example.com/in"},
)
CONSENT = LINK.model_copy(update={"reason": "oauth_consent"})
COLOUR = Interrupt(id="q", reason="choice", message="Which colour?", response_schema={"enum": ["red", "blue"]})


async def typed(keys: str, question: Interrupt) -> tuple[object, str]:
    """Return the answer to a question, and what the terminal shows. Without keys the input has ended."""
    shown = StringIO()
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=PlainTextOutput(shown)):
        pipe.send_text(keys)
        if not keys:
            pipe.close()
        answer = await fill(question, Asker(), Screen(Console(file=shown, width=200)))
    return answer, shown.getvalue()


@pytest.mark.parametrize(
    ("question", "lines", "answer"),
    [
        (FORM, "yl\n\nm,h\n\n3\n\n", {"size": "l", "colour": "b", "extras": ["m", "h"], "gift": True, "count": 3}),
        (
            FORM,
            "ys\nr\nh\nno\n3\nWarm.\n",
            {"size": "s", "colour": "r", "extras": ["h"], "gift": False, "count": 3, "note": "Warm."},
        ),
        (FORM, "ys\n\nm\n\n0\n\ns\n\nm\n\n2\n\n", FEW),
        (FORM, "n", DECLINE),
        (COLOUR, "red\n", "red"),
        (ACTION, "ygo\n", {"action": "go"}),
        (LINK, "y", {}),
        (LINK, "n", DECLINE),
        (CONSENT, "\n", {}),
    ],
)
async def test_lines_become_the_answer_to_a_question(question: Interrupt, lines: str, answer: object) -> None:
    given, _ = await typed(lines, question)
    assert given == answer


@pytest.mark.parametrize(
    ("question", "keys"),
    [*((question, keys) for question in (FORM, LINK, CONSENT, COLOUR) for keys in ("\x03", "")), (ACTION, "n")],
)
async def test_a_question_is_cancelled_by_ctrl_c_and_the_end_of_the_input(question: Interrupt, keys: str) -> None:
    with pytest.raises(Declined):
        await typed(keys, question)


async def test_options_defaults_and_links_are_shown() -> None:
    _, shown = await typed("yl\n\nm\n\n3\n\n", FORM)
    for text in (
        '"title": "Small"',
        "colour (Enter for b):",
        "gift (Enter for True):",
        "Note\ufffd[2J:",
    ):
        assert text in shown
    _, shown = await typed("y", LINK)
    assert "https://example.com/in" in shown
    assert "[y] answer  [n] decline" in shown
