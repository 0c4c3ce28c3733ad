"""``AGUI_MCP_SERVERS`` is read into servers, or refused in one sentence without a secret in it."""

import json

import pytest

from agui_container.tools.mcp.servers import HttpServer, McpConfigError, StdioServer, parse_servers
from tests.secret_search import planted


def test_both_kinds_are_read() -> None:
    text = json.dumps(
        [
            {
                "name": "shop",
                "url": "https://example.com/mcp",
                "headers": {"Authorization": f"Bearer {planted('mcp')}"},
            },
            {
                "name": "git",
                "command": "uvx",
                "args": ["mcp-server-git"],
                "env": {"TOKEN": planted("mcp")},
                "timeout": 5,
            },
        ]
    )
    shop, git = parse_servers(text)
    assert isinstance(shop, HttpServer)
    assert (str(shop.url), shop.headers, shop.timeout) == (
        "https://example.com/mcp",
        {"Authorization": f"Bearer {planted('mcp')}"},
        60,
    )
    assert isinstance(git, StdioServer)
    assert (git.command, git.args, git.env, git.timeout) == ("uvx", ("mcp-server-git",), {"TOKEN": planted("mcp")}, 5)
    assert planted("mcp") not in repr((shop, git))


@pytest.mark.parametrize(("chosen", "prefix"), [({}, "git_"), ({"tool_prefix": ""}, ""), ({"tool_prefix": "x."}, "x.")])
def test_the_prefix_is_the_name_unless_it_is_chosen(chosen: dict[str, object], prefix: str) -> None:
    (server,) = parse_servers(json.dumps([{"name": "git", "command": "uvx", **chosen}]))
    assert server.prefix == prefix


KIND = "A server is an object with a name, and a url or a command."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "the list: Input should be a valid array."),
        ("nope", "the list: Invalid JSON: expected ident at line 1 column 2."),
        ("[1]", f"0: {KIND}"),
        ('[{"name": "a"}]', f"0: {KIND}"),
        ('[{"url": "https://a"}]', "0.name: Field required."),
        (
            '[{"name": "a b", "url": "https://a"}]',
            "0.name: A name has 1 to 32 letters (A to Z), digits, _ or -, such as my_server.",
        ),
        ('[{"name": "a", "url": "file:///s3cret"}]', "0.url: URL scheme should be 'http' or 'https'."),
        ('[{"name": "a", "url": "https://a", "command": "b"}]', "0.command: Extra inputs are not permitted."),
        ('[{"name": "a", "command": "b", "env": {"A": 5}}]', "0.env.A: Input should be a valid string."),
        ('[{"name": "a", "command": "b", "timeout": 0}]', "0.timeout: Input should be greater than 0."),
        ('[{"name": "a", "command": "b"}, {"name": "a", "command": "c"}]', "1.name: There are two servers named 'a'."),
    ],
)
def test_a_bad_value_is_named(text: str, sentence: str) -> None:
    with pytest.raises(McpConfigError) as caught:
        parse_servers(text)
    assert str(caught.value) == sentence
