"""A platform around a container of the test's own loop, and this server as the container of another one."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol

import pytest

from agui_container.aws.platform.authorizer import NoAuthorizer
from agui_container.aws.platform.data_plane import build_platform, server_config
from agui_container.aws.platform.options import PlatformLimits, PlatformOptions
from tests.aws.platform.doubles import AttachedContainer, MovedClock, ScriptedContainer, ServedPlatform
from tests.behaviour.server import listening, port_of
from tests.sse import http_client


class AttachPlatform(Protocol):
    async def __call__(
        self,
        container: ScriptedContainer | None = None,
        limits: dict[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - the fields of PlatformOptions
    ) -> ServedPlatform: ...


@pytest.fixture
async def attach() -> AsyncIterator[AttachPlatform]:
    """A platform whose containers are all one application in this loop."""
    async with AsyncExitStack() as stack:

        async def attach(
            container: ScriptedContainer | None = None,
            limits: dict[str, Any] | None = None,
            **options: Any,  # noqa: ANN401 - the fields of PlatformOptions
        ) -> ServedPlatform:
            inner = await stack.enter_async_context(listening((container or ScriptedContainer()).app()))
            port, containers, clock = port_of(inner), list[AttachedContainer](), MovedClock()

            def make_container() -> AttachedContainer:
                containers.append(AttachedContainer(port))
                return containers[-1]

            chosen = {"authorizer": NoAuthorizer(), "now": clock.now, **options}
            figures = replace(PlatformLimits(ping_seconds=0.02), **(limits or {}))
            app = build_platform(PlatformOptions(make_container, limits=figures, **chosen))
            url = await stack.enter_async_context(listening(app, server_config(app)))
            http = await stack.enter_async_context(http_client(url))
            stack.push_async_callback(app.state.plane.aclose)
            return ServedPlatform(url, app.state.plane, clock, containers, http)

        yield attach
