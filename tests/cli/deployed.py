"""An agent behind the local AgentCore, and the target of a command that talks to it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import uvicorn
from botocore.session import Session as AwsSession  # type: ignore[import-untyped]

from agui_client import SigV4
from agui_container import Settings, create_app
from agui_container.aws.platform.authorizer import InboundAuthorizer, SigV4Authorizer
from agui_container.aws.platform.data_plane import build_platform
from agui_container.aws.platform.options import PlatformLimits, PlatformOptions
from agui_container.cli.target import Target
from tests.aws.platform.doubles import RUNTIME, AttachedContainer
from tests.behaviour.server import listening, serving
from tests.secret_search import planted

KEY = "AKIDTEST"


def signer(secret: str) -> SigV4:
    session = AwsSession()
    session.set_credentials(KEY, secret)
    return SigV4("us-east-1", session)


@asynccontextmanager
async def deployed(authorizer: InboundAuthorizer) -> AsyncIterator[str]:
    policy = '[{"tool_pattern": "calculate", "policy": "ask"}]'
    settings = Settings(tool_policy=policy, error_status="stream", console=False)
    limits = PlatformLimits()
    async with serving(create_app(None, settings)) as url:
        port = int(url.rpartition(":")[2])
        app = build_platform(PlatformOptions(lambda: AttachedContainer(port), authorizer, limits))
        config = uvicorn.Config(app, log_config=None, access_log=False, ws_max_size=limits.frame_bytes)
        async with listening(app, config) as platform:
            yield f"{platform}{RUNTIME}/invocations"


def signed_runtime() -> AbstractAsyncContextManager[str]:
    return deployed(SigV4Authorizer(KEY, planted("aws")))


def page_for(runtime: str, secret: str) -> Target:
    return Target("runtime", runtime, {"sigv4": signer(secret)})
