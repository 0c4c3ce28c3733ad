"""The agent that ``AGUI_AGENT=module:attribute`` names.

Rule: whatever is wrong is found at the start, and said in one sentence that names what was found and what is accepted.
"""

import importlib
from functools import reduce

from app.agents.callables import AgentLoadError, adapt
from app.ports import Agent


def load_agent(reference: str) -> Agent:
    """Import the module, find the attribute (dots go deeper), and make an agent of it.

    Raises:
        AgentLoadError: if there is no such thing, or it is not an agent.
    """
    module_name, colon, path = reference.strip().partition(":")
    if not (module_name and colon and path):
        raise AgentLoadError(f"'{reference}' is not of the form module:attribute, for example my_agent:agent.")
    module = _module(module_name)
    try:
        source: object = reduce(getattr, path.split("."), module)
    except AttributeError as error:
        raise AgentLoadError(f"The module '{module_name}' has no '{path}'.") from error
    return adapt(source, f"{module_name}:{path}")


def _module(name: str) -> object:
    try:
        return importlib.import_module(name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (name == missing or name.startswith(f"{missing}.")):
            raise AgentLoadError(f"There is no module '{missing}' (wanted for '{name}').") from error
        text = f"The module '{name}' cannot be imported: {type(error).__name__}: {error}"
        raise AgentLoadError(text) from error
