"""Requirements that an environment elsewhere cannot install, and those that it can."""

import pytest

from agui_container.aws.deploy.requirements import RequirementError, check_requirements, installations

WHEEL = "wheels/agui_container-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("agui-container", "agui-container"),
        ("httpx\nagui_container[all,langgraph]==0.1.0 # pinned", "agui_container[all,langgraph]"),
        ("AGUI.Client>=0.1", "AGUI.Client"),
        ("--extra-index-url https://index.example/simple\nagui-container", "agui-container"),
        (f"./{WHEEL}\nagui-client", "agui-client"),
        (installations("FROM a\nRUN pip install \\\n  agui-container[all]\n"), "agui-container[all]"),
        (installations("RUN cd /a && uv pip install 'agui-container[all]'"), "agui-container[all]"),
    ],
)
def test_a_name_that_no_index_has_is_refused(text: str, name: str) -> None:
    with pytest.raises(RequirementError) as refused:
        check_requirements(text, "requirements.txt", lambda _: True)
    assert str(refused.value).startswith(f"requirements.txt names {name}, which is on no index.")


@pytest.mark.parametrize("text", [f"./{WHEEL}[all]", WHEEL, installations(f"RUN pip install './{WHEEL}[all]'")])
def test_a_wheel_that_is_not_there_is_refused(text: str) -> None:
    check_requirements(text, "requirements.txt", {WHEEL}.__contains__)
    with pytest.raises(RequirementError, match=f"names {WHEEL}, which is not there"):
        check_requirements(text, "requirements.txt", set[str]().__contains__)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "httpx\n# agui-container\n",
        "agui-container[all] @ git+https://a.example/agui-container.git@main",
        "git+https://a.example/agui.git#egg=agui-container",
        f"https://a.example/{WHEEL}",
        f"agui-container @ https://a.example/{WHEEL}",
        "--index-url https://index.example/simple\nagui-container",
        "my-agui-container-plugin",
        installations("FROM agui-container:latest\nCOPY agui-container /app"),
    ],
)
def test_everything_else_is_left_to_pip(text: str) -> None:
    check_requirements(text, "requirements.txt", lambda _: False)
