"""Install commands of the guides name the packages, in the versions, with which examples and tests are locked."""

import json
import re
import shlex
from collections.abc import Iterator

import pytest

from tests.docs.documents import BLOCKS, NPM, ROOT
from tests.docs.markdown import Block, Document

APPS = ("copilotkit-direct", "copilotkit-runtime", "assistant-ui")
CLIENT = "clients/typescript"
GRPC = "tests/grpc/clients"
OFFICIAL = "tests/js"
README = Document.read(ROOT / CLIENT / "README.md", ROOT)
INSTALLS = [block for block in [*BLOCKS, *README.blocks] if "npm install " in block.text]

Versions = dict[str, str]


def manifest(folder: str) -> dict[str, Versions]:
    """The ``package.json`` of a folder."""
    parsed: dict[str, Versions] = json.loads((ROOT / folder / "package.json").read_text())
    return parsed


def named_packages(block: Block) -> Versions:
    """The packages that a block installs from the registry. A package without a version has an empty one."""
    (command,) = (line for line in block.text.replace("\\\n", " ").splitlines() if line.startswith("npm install "))
    packages = [
        re.fullmatch(r"(@?[^@]+)@?(.*)", word) for word in shlex.split(command)[2:] if not word.startswith(("./", "-"))
    ]
    return {package[1]: package[2] for package in packages if package}


def locked_packages() -> Iterator[Versions]:
    """The packages of examples and of the TypeScript client's README, the official client, and any ``buf``."""
    for app in APPS:
        pinned = manifest(f"examples/{app}")["dependencies"]
        yield {name: version for name, version in pinned.items() if name != "@agui-container/client"}
    tested = manifest(CLIENT)["devDependencies"]
    yield {name: tested[name] for name in (*manifest(CLIENT)["peerDependencies"], "ws")}
    yield {name: version for name, version in manifest(OFFICIAL)["dependencies"].items() if name == "@ag-ui/client"}
    yield {name: "" for name in manifest(GRPC)["dependencies"] if name == "@bufbuild/buf"}


@pytest.mark.parametrize("block", INSTALLS, ids=str)
def test_an_install_command_names_the_versions_that_are_tested(block: Block) -> None:
    assert named_packages(block) in list(locked_packages())


def test_every_example_and_the_client_have_an_install_command() -> None:
    named = [named_packages(block) for block in INSTALLS]
    assert all(packages in named for packages in locked_packages())


def test_install_commands_name_the_archive_that_npm_pack_makes() -> None:
    package = json.loads((ROOT / CLIENT / "package.json").read_text())
    archive = f"{package['name'].removeprefix('@').replace('/', '-')}-{package['version']}.tgz"
    for block in INSTALLS:
        assert re.findall(r"\./(\S+\.tgz)", block.text) == ([archive] if "npm pack" in block.text else []), block


def test_the_override_of_an_install_command_is_that_of_the_example() -> None:
    example = manifest("examples/assistant-ui")
    assert example["overrides"] == {"@ag-ui/client": "$@ag-ui/client"}
    (named,) = (found for block in INSTALLS for found in re.findall(r"'overrides\.(\S+)'", block.text))
    assert named == f"@ag-ui/client={example['dependencies']['@ag-ui/client']}"


def test_every_install_command_is_marked_as_one_that_is_not_run() -> None:
    assert [block for block in BLOCKS if "npm install " in block.text and NPM not in block.marks] == []
