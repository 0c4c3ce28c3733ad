"""Using a skill: the tool with which a model reads one, and ``forwardedProps.skill`` with which a caller asks for one.

Rule: the operator wrote the skill, so it stands in the system text; its arguments come from a caller, so they are what
they would be without a skill: a message of the user. The placeholder in a skill refers to that message.
"""

from collections.abc import Callable, Mapping, Sequence

from ag_ui.core import Message, ToolMessage, UserMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, StrictStr, TypeAdapter

from app.agents.guidance.skills import Skill
from app.core.errors import AppError, Code
from app.core.forwarded import forwarded
from app.ports import RunContext, Tool, ToolError

FIELD = "forwardedProps.skill"
SHOWN_CHARACTERS = 64
"""How much of a name that nobody knows is said back."""


# --- the model reads a skill ------------------------------------------------------------------------------------------


class LoadSkill(Struct, frozen=True):
    """Implements ``ports.Tool``: the instructions of a skill, by its name."""

    skills: Sequence[Skill]

    @property
    def spec(self) -> ToolSpec:
        """One argument, the name."""
        names = {"type": "string", "enum": [skill.name for skill in self.skills]}
        parameters = {"type": "object", "properties": {"name": names}, "required": ["name"]}
        return ToolSpec(name="load_skill", description="Read the instructions of a skill.", parameters=parameters)

    async def call(self, arguments: Mapping[str, object], _ctx: RunContext) -> str:
        """The instructions. Raises ``ToolError`` with the names there are."""
        name = arguments.get("name")
        for skill in self.skills:
            if skill.name == name:
                return skill.instructions
        raise ToolError(unknown(name, self.skills))


def skill_tools(skills: Sequence[Skill]) -> Sequence[Tool]:
    """The tools that skills need: none where there are no skills."""
    return [LoadSkill(skills)] if skills else []


def unknown(name: object, skills: Sequence[Skill]) -> str:
    """That there is no such skill, and which there are."""
    known = f"known are {', '.join(skill.name for skill in skills)}" if skills else "this server has no skills"
    return f"there is no skill named '{str(name)[:SHOWN_CHARACTERS]}'; {known}."


# --- a caller asks for a skill ----------------------------------------------------------------------------------------


class _Asked(BaseModel):
    """``forwardedProps.skill``."""

    model_config = ConfigDict(frozen=True)

    name: StrictStr
    arguments: StrictStr = ""


_ASKED = TypeAdapter(_Asked)


class Invocation(Struct, frozen=True):
    """A skill that a caller asks for, in one run."""

    skill: Skill
    arguments: str

    @property
    def section(self) -> str:
        """The skill in the system text."""
        head = "The user asks for this skill. Follow it in your answer."
        return f"## Skill {self.skill.name}\n\n{head}\n\n{self.skill.instructions}"

    def asked(self, messages: Sequence[Message], new_id: Callable[[], str]) -> list[Message]:
        """The conversation with the arguments as the user's last message.

        They are not added where the user has just said the same. Without arguments the user's last message stands, or
        the results of tools; where there is neither, the skill is asked for, because models want to be spoken to.
        """
        goes_on = bool(messages) and isinstance(messages[-1], UserMessage | ToolMessage)
        said = next((message.content for message in reversed(messages) if isinstance(message, UserMessage)), None)
        if goes_on and self.arguments in ("", said):
            return list(messages)
        content = self.arguments or f"Use the skill {self.skill.name}."
        return [*messages, UserMessage(id=new_id(), content=content)]


def invocation_of(props: object, skills: Sequence[Skill]) -> Invocation | None:
    """The skill that ``forwardedProps`` asks for, if any.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    chosen = forwarded(props, "skill", _ASKED)
    if chosen is None:
        return None
    for skill in skills:
        if skill.name == chosen.name:
            return Invocation(skill, chosen.arguments)
    raise AppError(Code.VALIDATION_ERROR, f"{FIELD}.name: {unknown(chosen.name, skills)}")
