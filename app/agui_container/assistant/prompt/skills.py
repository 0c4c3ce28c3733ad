"""Skills: instructions for certain tasks, which the model loads with a tool or a caller requests.

A skill is a file ``NAME/SKILL.md``: YAML front matter with ``name`` and ``description`` between two lines ``---``, then
the instructions. A caller requests one with ``forwardedProps.skill``.

Rules:
- Skills are read once, at startup. An invalid skill stops the server with one sentence.
- Unknown keys of the front matter are ignored.
- The instructions are the operator's text and enter the system text. The arguments are a caller's text and enter the
  conversation as a user message. The placeholder in a skill refers to that message.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ag_ui.core import Message, UserMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, StrictStr, TypeAdapter

from agui_container.assistant.history import is_prompt
from agui_container.assistant.prompt.system_text import read_text
from agui_container.ports import RunContext, Tool, ToolError
from agui_container.protocol.errors import validation_error
from agui_container.protocol.parser import read_forwarded_prop

FILE = "SKILL.md"
MAX_SKILLS = 200
MAX_DESCRIPTION = 1_024
"""Maximum characters of a description. The descriptions of all skills are part of every prompt."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MATTER = re.compile(r"---[ \t]*\r?\n(?P<matter>.*?)^---[ \t]*(\r?\n|\Z)(?P<body>.*)", re.DOTALL | re.MULTILINE)

PLACEHOLDER = "$ARGUMENTS"
ARGUMENTS = "the user's last message"
"""Replacement of the placeholder. The arguments are a caller's text, so they never become an instruction."""


class SkillError(ValueError):
    """Error at startup: a skill cannot be used. Its text is for the operator."""


class Skill(Struct, frozen=True):
    name: str
    description: str
    body: str

    @property
    def instructions(self) -> str:
        return self.body.replace(PLACEHOLDER, ARGUMENTS)


def read_skills(folder: str) -> tuple[Skill, ...]:
    """Read the skills of a folder, sorted by name. Hidden folders and plain files in it are ignored.

    Raises:
        SkillError: the folder or a skill in it cannot be used.
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
    """Parse a skill's file. ``name`` is the name of its folder. Raises ``SkillError``."""
    match = MATTER.match(text)
    if match is None:
        raise SkillError("it does not begin with front matter between two lines '---'.")
    matter = _front_matter(match["matter"])
    if matter.get("name") != name:
        raise SkillError(f"its 'name' must be that of its folder, '{name}'.")
    if not NAME.fullmatch(name):
        raise SkillError("a name is lower-case letters and digits, with single hyphens between them.")
    description = matter.get("description")
    one_line = " ".join(description.split()) if isinstance(description, str) else ""
    if not 0 < len(one_line) <= MAX_DESCRIPTION:
        raise SkillError(f"its 'description' must be a text of 1 to {MAX_DESCRIPTION} characters.")
    if not match["body"].strip():
        raise SkillError("there are no instructions behind its front matter.")
    return Skill(name, one_line, match["body"].strip())


def _front_matter(text: str) -> Mapping[object, object]:
    import yaml  # noqa: PLC0415 - needed only if there are skills

    try:
        # BaseLoader creates only texts, lists and objects, so a skill may be named 2024 or on.
        matter: object = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506
    except yaml.YAMLError:
        raise SkillError("its front matter is not YAML.") from None
    if not isinstance(matter, dict):
        raise SkillError("its front matter holds no 'name' and 'description'.")
    return matter


def skill_list(skills: Sequence[Skill]) -> str:
    if not skills:
        return ""
    head = "Instructions for certain tasks. Before you begin a task that one is for, read it with the tool load_skill."
    return "\n".join(["## Skills", "", head, "", *(f"- {skill.name}: {skill.description}" for skill in skills)])


FIELD = "forwardedProps.skill"
MAX_SHOWN_NAME = 64
"""Maximum characters of an unknown name in an error message."""


# --- tool of the model ------------------------------------------------------------------------------------------------


class LoadSkill(Struct, frozen=True):
    """Implements ``ports.Tool``: returns the instructions of a skill by its name."""

    skills: Sequence[Skill]

    @property
    def spec(self) -> ToolSpec:
        names = {"type": "string", "enum": [skill.name for skill in self.skills]}
        parameters = {"type": "object", "properties": {"name": names}, "required": ["name"]}
        return ToolSpec(name="load_skill", description="Read the instructions of a skill.", parameters=parameters)

    async def call(self, arguments: Mapping[str, object], _ctx: RunContext) -> str:
        """The error for an unknown skill lists the known names."""
        name = arguments.get("name")
        for skill in self.skills:
            if skill.name == name:
                return skill.instructions
        raise ToolError(unknown_skill_message(name, self.skills))


def skill_tools(skills: Sequence[Skill]) -> Sequence[Tool]:
    return [LoadSkill(skills)] if skills else []


def unknown_skill_message(name: object, skills: Sequence[Skill]) -> str:
    hint = f"known are {', '.join(skill.name for skill in skills)}" if skills else "this server has no skills"
    return f"there is no skill named '{str(name)[:MAX_SHOWN_NAME]}'; {hint}."


# --- commands of callers ----------------------------------------------------------------------------------------------


class _SkillRequest(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: StrictStr
    arguments: StrictStr = ""


_REQUEST = TypeAdapter(_SkillRequest)


class SkillInvocation(Struct, frozen=True):
    skill: Skill
    arguments: str

    @property
    def section(self) -> str:
        head = "The user asks for this skill. Follow it in your answer."
        return f"## Skill {self.skill.name}\n\n{head}\n\n{self.skill.instructions}"

    def with_arguments(self, messages: Sequence[Message], new_id: Callable[[], str]) -> list[Message]:
        """Return the conversation with the arguments as the last user message.

        Nothing is appended if the last user message equals the arguments. Without arguments a request for the skill is
        appended, but only if the conversation ends with nothing to answer.
        """
        has_prompt = bool(messages) and is_prompt(messages[-1])
        user_text = next((message.content for message in reversed(messages) if isinstance(message, UserMessage)), None)
        arguments = self.arguments if self.arguments.strip() else ""
        if has_prompt and arguments in ("", user_text):
            return list(messages)
        return [*messages, UserMessage(id=new_id(), content=arguments or f"Use the skill {self.skill.name}.")]


def requested_skill(props: object, skills: Sequence[Skill]) -> SkillInvocation | None:
    """Raise ``AppError`` VALIDATION_ERROR for an unknown skill, naming the field."""
    chosen = read_forwarded_prop(props, "skill", _REQUEST)
    if chosen is None:
        return None
    for skill in skills:
        if skill.name == chosen.name:
            return SkillInvocation(skill, chosen.arguments)
    raise validation_error(f"{FIELD}.name: {unknown_skill_message(chosen.name, skills)}")
