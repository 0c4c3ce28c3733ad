"""Requirements that an environment elsewhere cannot install, and those that it can."""

import pytest

from agui_container.aws.deploy.requirements import REQUIREMENTS, find_faults

SERVER, CLIENT = (f"wheels/agui_{name}-0.1.0-py3-none-any.whl" for name in ("container", "client"))
BARE, MISSING, ALONE = ", which is on no index.", ", which is not there.", "agui-container is named without agui-client"
GIT = "git+https://a.example/agui-container.git@main"
BOTH_OF_GIT = f"agui-container[all] @ {GIT}\nagui-client @ {GIT}#subdirectory=clients/python"
INDEX = "https://index.example/simple"


@pytest.mark.parametrize(
    ("requirements", "dockerfile", "faults"),
    [
        ("agui-container agui-client", "", [f"requirements.txt names agui-container{BARE}"]),
        (
            "httpx\nagui_container[all,mcp]==0.1.0 # pinned",
            "",
            [f"requirements.txt names agui_container[all,mcp]{BARE}", ALONE],
        ),
        ("AGUI.Client>=0.1", "", [f"requirements.txt names AGUI.Client{BARE}"]),
        (f"--extra-index-url {INDEX}\nagui-client", "", [f"requirements.txt names agui-client{BARE}"]),
        ("", "FROM a\nRUN pip install \\\n  agui-client[x]\n", [f"Dockerfile names agui-client[x]{BARE}"]),
        ("", "RUN sed -i s/a/b/ c && uv pip install 'agui-client'", [f"Dockerfile names agui-client{BARE}"]),
        (f"./{SERVER}[all]\n./{CLIENT}", "", []),
        (f"./{CLIENT}", f"RUN pip install -r requirements.txt './{SERVER}[all]'", []),
        (f"./{SERVER}[all]", "", [ALONE]),
        ("", f"RUN pip install '{GIT}'", [ALONE]),
        (
            "./wheels/agui_client-9-py3-none-any.whl",
            "",
            [f"requirements.txt names wheels/agui_client-9-py3-none-any.whl{MISSING}"],
        ),
        (
            "",
            "RUN pip install agui_client-9-py3-none-any.whl",
            [f"Dockerfile names agui_client-9-py3-none-any.whl{MISSING}"],
        ),
        ("", "", []),
        ("httpx\n# agui-container\nmy-agui-container-plugin", "FROM agui-container:1\nCOPY agui-container /app", []),
        (BOTH_OF_GIT, "", []),
        (f"https://a.example/{SERVER}\nagui-client @ https://a.example/{CLIENT}", "", []),
        (f"--index-url {INDEX}\nagui-container", "", []),
        ("agui-container", f"RUN pip install -i {INDEX} -r requirements.txt", []),
        ("agui-container", f"ENV PIP_INDEX_URL={INDEX}\nRUN pip install -r requirements.txt", []),
    ],
)
def test_what_pip_would_not_find_is_a_fault_and_everything_else_is_left_to_pip(
    requirements: str, dockerfile: str, faults: list[str]
) -> None:
    found = list(find_faults({REQUIREMENTS: requirements, "Dockerfile": dockerfile}, {SERVER, CLIENT}.__contains__))
    assert len(found) == len(faults)
    assert all(sentence.startswith(fault) for sentence, fault in zip(found, faults, strict=True)), found
