"""Skills: instructions for certain tasks, each in a folder of its own, which a model is given when they are needed.

A skill is ``NAME/SKILL.md``: YAML front matter with ``name`` and ``description`` between two lines ``---``, and the
instructions behind it. Rule: read once, at the start, which any fault stops with one sentence. Keys of the front matter
that are not known here are for others.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from app.agents.guidance.project import read_text

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
        return parsed(home.name, read_text(home / FILE))
    except SkillError as error:
        raise SkillError(f"'{home / FILE}': {error}") from None
    except ValueError as error:
        raise SkillError(str(error)) from None


def parsed(name: str, text: str) -> Skill:
    """The skill of this name from the text of its file.

    Raises:
        SkillError: what is wrong with it.
    """
    found = MATTER.match(text)
    if found is None:
        raise SkillError("it does not begin with front matter between two lines '---'.")
    matter = _matter(found["matter"])
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


def _matter(text: str) -> Mapping[object, object]:
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
