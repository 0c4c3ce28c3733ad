"""A platform around a container of the test's own loop, and this server as the container of another one."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol

import pytest
import uvicorn

from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import NoAuthorizer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.limits import PlatformLimits
from tests.behaviour.server import listening, port_of
from tests.platform.doubles import AttachedContainer, MovedClock, ScriptedContainer, ServedPlatform
from tests.sse import http_client


class AttachPlatform(Protocol):
    """Serve a container, and a platform in front of it."""

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

            chosen = {"authorizer": NoAuthorizer(), "clock": clock, **options}
            app = build_platform(
                PlatformOptions(make_container, limits=replace(PlatformLimits(), **(limits or {})), **chosen)
            )
            config = uvicorn.Config(app, log_config=None, access_log=False, ws_max_size=65_536)
            url = await stack.enter_async_context(listening(app, config))
            http = await stack.enter_async_context(http_client(url))
            stack.push_async_callback(app.state.plane.aclose)
            return ServedPlatform(url, app.state.plane, clock, containers, http)

        yield attach
