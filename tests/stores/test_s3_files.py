"""Files in a bucket, against moto."""

import asyncio
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from agui_container.ports.files import File, FileHead, FileStore
from agui_container.ports.store import StoreUnavailable
from agui_container.stores import open_store
from agui_container.stores.files import open_files
from tests.models.bedrock.doubles import as_nobody

pytestmark = pytest.mark.packages

HEAD = FileHead("f1", "a b ☃.png", "image/png")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileStore]:
    from moto import mock_aws  # noqa: PLC0415 - only the long lane has it

    as_nobody(monkeypatch)
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="chats")
        opened = open_files("s3://chats/of/agent/", "memory", open_store("memory"))
        assert opened is not None
        yield opened


async def test_a_file_is_stored_read_and_deleted_below_the_prefix(files: FileStore) -> None:
    await files.put("me", HEAD, BytesIO(b"bytes"))
    assert await files.get("me", "f1") == File("f1", HEAD.name, "image/png", b"bytes")
    (found,) = boto3.client("s3").list_objects_v2(Bucket="chats")["Contents"]
    assert found["Key"].startswith("of/agent/")
    assert await files.get("you", "f1") is None
    await files.delete("me", "f1")
    assert await files.get("me", "f1") is None
    await files.forget(1e12)
    await files.aclose()


async def test_first_calls_at_once_share_one_client_of_the_region_that_agentcore_names(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions: list[str] = []
    make_client = boto3.session.Session.client

    def client(session: Any, *args: object) -> object:  # noqa: ANN401 - boto3 has no types of its own
        regions.append(session.region_name)
        return make_client(session, *args)

    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setattr(boto3.session.Session, "client", client)
    await asyncio.gather(*[files.get("me", name) for name in "abcd"])
    assert regions == ["eu-west-1"]


async def test_a_bucket_that_is_not_there_is_unavailable(files: FileStore) -> None:
    boto3.client("s3").delete_bucket(Bucket="chats")
    with pytest.raises(StoreUnavailable, match="NoSuchBucket"):
        await files.put("me", HEAD, BytesIO(b"bytes"))
    with pytest.raises(StoreUnavailable, match="NoSuchBucket"):
        await files.get("me", "f1")
