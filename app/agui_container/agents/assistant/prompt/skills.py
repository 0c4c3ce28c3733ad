"""Skills: instructions for certain tasks, each in a folder of its own, which a model is given when they are needed.

A skill is ``NAME/SKILL.md``: YAML front matter with ``name`` and ``description`` between two lines ``---``, and the
instructions behind it. Rule: read once, at the start, which any fault stops with one sentence. Keys of the front matter
that are not known here are for others.

Using a skill: the tool with which a model reads one, and ``forwardedProps.skill`` with which a caller asks for one.

Rule: the operator wrote the skill, so it stands in the system text; its arguments come from a caller, so they are what
they would be without a skill: a message of the user. The placeholder in a skill refers to that message.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ag_ui.core import Message, ToolMessage, UserMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, StrictStr, TypeAdapter

from agui_container.agents.assistant.prompt.system_text import read_text
from agui_container.ports import RunContext, Tool, ToolError
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.forwarded_props import read_forwarded_prop

FILE = "SKILL.md"
MAX_SKILLS = 200
MAX_DESCRIPTION = 1_024
"""Characters; every model call pays for the descriptions of all skills."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MATTER = re.compile(r"---[ \t]*\r?\n(?P<matter>.*?)^---[ \t]*(\r?\n|\Z)(?P<body>.*)", re.DOTALL | re.MULTILINE)

PLACEHOLDER = "$ARGUMENTS"
ARGUMENTS = "the user's last message"
"""What stands for the arguments in a skill: their text comes from a caller, so it never becomes an instruction."""


class SkillError(ValueError):
    """A skill cannot be used. The text is for the operator, at the start."""


class Skill(Struct, frozen=True):
    """A name, what the skill is for, and the instructions."""

    name: str
    description: str
    body: str

    @property
    def instructions(self) -> str:
        """The instructions as a model reads them."""
        return self.body.replace(PLACEHOLDER, ARGUMENTS)


def read_skills(folder: str) -> tuple[Skill, ...]:
    """The skills of a folder, by name. Hidden folders and plain files in it are passed over.

    Raises:
        SkillError: the folder or a skill in it cannot be used; the text says which and why.
    """
    try:
        homes = sorted(home for home in Path(folder).iterdir() if home.is_dir() and not home.name.startswith("."))
    except OSError as error:
        raise SkillError(f"the folder '{folder}' cannot be read: {error.strerror}.") from None
    if not 0 < len(homes) <= MAX_SKILLS:
        raise SkillError(f"'{folder}' has {len(homes)} skills (NAME/{FILE}); from 1 to {MAX_SKILLS} are accepted.")
    return tuple(_read(home) for home in homes)


def _read(home: Path) -> Skill:
    try:
        return parse_skill(home.name, read_text(home / FILE))
    except SkillError as error:
        raise SkillError(f"'{home / FILE}': {error}") from None
    except ValueError as error:
        raise SkillError(str(error)) from None


def parse_skill(name: str, text: str) -> Skill:
    """The skill of this name from the text of its file.

    Raises:
        SkillError: what is wrong with it.
    """
    found = MATTER.match(text)
    if found is None:
        raise SkillError("it does not begin with front matter between two lines '---'.")
    matter = _front_matter(found["matter"])
    if matter.get("name") != name:
        raise SkillError(f"its 'name' must be that of its folder, '{name}'.")
    if not NAME.fullmatch(name):
        raise SkillError("a name is lower-case letters and digits, with single hyphens between them.")
    description = matter.get("description")
    words = " ".join(description.split()) if isinstance(description, str) else ""
    if not 0 < len(words) <= MAX_DESCRIPTION:
        raise SkillError(f"its 'description' must be a text of 1 to {MAX_DESCRIPTION} characters.")
    if not found["body"].strip():
        raise SkillError("there are no instructions behind its front matter.")
    return Skill(name, words, found["body"].strip())


def _front_matter(text: str) -> Mapping[object, object]:
    import yaml  # noqa: PLC0415 - not unless there are skills

    try:
        # All scalars are text: a skill may be named 2024, or on. BaseLoader makes nothing but text, lists and objects.
        matter: object = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506
    except yaml.YAMLError:
        raise SkillError("its front matter is not YAML.") from None
    if not isinstance(matter, dict):
        raise SkillError("its front matter holds no 'name' and 'description'.")
    return matter


def skill_list(skills: Sequence[Skill]) -> str:
    """What the model is told of its skills before it needs one."""
    if not skills:
        return ""
    head = "Instructions for certain tasks. Before you begin a task that one is for, read it with the tool load_skill."
    return "\n".join(["## Skills", "", head, "", *(f"- {skill.name}: {skill.description}" for skill in skills)])


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
        raise ToolError(unknown_skill_message(name, self.skills))


def skill_tools(skills: Sequence[Skill]) -> Sequence[Tool]:
    """The tools that skills need: none where there are no skills."""
    return [LoadSkill(skills)] if skills else []


def unknown_skill_message(name: object, skills: Sequence[Skill]) -> str:
    """That there is no such skill, and which there are."""
    known = f"known are {', '.join(skill.name for skill in skills)}" if skills else "this server has no skills"
    return f"there is no skill named '{str(name)[:SHOWN_CHARACTERS]}'; {known}."


# --- a caller asks for a skill ----------------------------------------------------------------------------------------


class _SkillRequest(BaseModel):
    """``forwardedProps.skill``."""

    model_config = ConfigDict(frozen=True)

    name: StrictStr
    arguments: StrictStr = ""


_ASKED = TypeAdapter(_SkillRequest)


class SkillInvocation(Struct, frozen=True):
    """A skill that a caller asks for, in one run."""

    skill: Skill
    arguments: str

    @property
    def section(self) -> str:
        """The skill in the system text."""
        head = "The user asks for this skill. Follow it in your answer."
        return f"## Skill {self.skill.name}\n\n{head}\n\n{self.skill.instructions}"

    def with_arguments(self, messages: Sequence[Message], new_id: Callable[[], str]) -> list[Message]:
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


def requested_skill(props: object, skills: Sequence[Skill]) -> SkillInvocation | None:
    """The skill that ``forwardedProps`` asks for, if any.

    Raises:
        AppError: VALIDATION_ERROR, naming the field.
    """
    chosen = read_forwarded_prop(props, "skill", _ASKED)
    if chosen is None:
        return None
    for skill in skills:
        if skill.name == chosen.name:
            return SkillInvocation(skill, chosen.arguments)
    raise AppError(ErrorCode.VALIDATION_ERROR, f"{FIELD}.name: {unknown_skill_message(chosen.name, skills)}")
