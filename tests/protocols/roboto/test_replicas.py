"""A session of one replica, polled and continued through another one."""

import asyncio
from uuid import uuid4

import pytest

from agui_container.main import build_app
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import WAIT
from tests.engine.replicas import Replicas
from tests.protocols.roboto.conftest import Api
from tests.protocols.roboto.test_routes import texts
from tests.sse import http_client
from tests.waiting_agent import WaitingAgent

pytestmark = pytest.mark.wire


async def test_a_session_is_begun_at_one_replica_and_polled_at_another() -> None:
    replicas, agent = Replicas(), WaitingAgent(lambda _: "so far", ", and the rest")
    settings = Settings(roboto=True)
    first, second = await replicas.start(agent), await replicas.start(agent)
    second.new_id = lambda: uuid4().hex  # the doubles of both replicas would make the same ids
    apps = [build_app(settings, service) for service in (first, second)]
    async with (
        asyncio.timeout(WAIT),
        serving(apps[0]) as one,
        serving(apps[1]) as two,
        http_client(one) as http_one,
        http_client(two) as http_two,
    ):
        here, there = Api(http_one), Api(http_two)
        record = await here.start("hi")
        seen = await there.data("GET", f"/{record['thread_id']}")
        assert seen["status"] == "roboto_turn"
        while texts(seen) != ["hi", "so far"]:
            seen = await there.data("GET", f"/{record['thread_id']}")
        agent.may_end.set()
        held = await there.finished(seen)
        assert texts(held) == ["hi", "so far, and the rest"]
        final = await here.finished(await there.send(held, "again"))
        assert texts(final)[-1] == "so far, and the rest"
        assert len((await here.data("GET", f"/{record['thread_id']}"))["messages"]) == 4
