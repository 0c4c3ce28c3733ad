"""Files in a bucket of S3.

Rule: a key is a digest of owner and id below the prefix, so the bucket shows no ids of clients. ``boto3`` blocks, so
its calls run in threads. How long the bucket keeps objects is the concern of its lifecycle rules.
"""

import os
import threading
from collections.abc import Callable
from hashlib import sha256
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, unquote

import msgspec
from anyio import to_thread
from boto3.exceptions import Boto3Error  # type: ignore[import-untyped]
from boto3.session import Session  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from agui_container.ports.files import File, FileHead
from agui_container.ports.store import StoreUnavailable

T = TypeVar("T")


class S3Files:
    """Implements ``FileStore`` in a bucket, with the credentials and the region of the environment."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._making = threading.Lock()
        self._made: Any = None

    async def put(self, owner: str, head: FileHead, content: BinaryIO) -> None:
        facts = {"ContentType": head.mime_type, "Metadata": {"id": quote(head.id), "name": quote(head.name)}}
        key = self._key(owner, head.id)
        await self._in_thread(lambda: self._client().upload_fileobj(content, self._bucket, key, ExtraArgs=facts))

    async def get(self, owner: str, file_id: str) -> File | None:
        key = self._key(owner, file_id)

        def read() -> File | None:
            try:
                found = self._client().get_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchKey":
                    return None
                raise
            name = unquote(found["Metadata"].get("name", ""))
            return File(file_id, name, found["ContentType"], found["Body"].read())

        return await self._in_thread(read)

    async def delete(self, owner: str, file_id: str) -> bool:
        key = self._key(owner, file_id)
        await self._in_thread(lambda: self._client().delete_object(Bucket=self._bucket, Key=key))
        return True

    async def forget(self, before: float) -> None:
        """Do nothing: the bucket's lifecycle rules delete old objects."""

    async def aclose(self) -> None:
        if self._made is not None:
            await to_thread.run_sync(self._made.close)

    def _client(self) -> Any:  # noqa: ANN401 - boto3 has no types of its own
        """Return the client, which is made by the first use: a snapshot must not hold a connection."""
        with self._making:
            # AgentCore sets AWS_REGION, which boto3, unlike every other AWS SDK, does not read.
            self._made = self._made or Session(region_name=os.environ.get("AWS_REGION")).client("s3")
            return self._made

    def _key(self, owner: str, file_id: str) -> str:
        return self._prefix + sha256(msgspec.json.encode([owner, file_id])).hexdigest()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await to_thread.run_sync(work)
        except (Boto3Error, BotoCoreError, ClientError) as error:
            raise StoreUnavailable(f"the bucket {self._bucket}: {error}") from error
