"""Calls of AWS through boto3, in one region."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from boto3.session import Session  # type: ignore[import-untyped]
from botocore import xform_name  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

Response = dict[str, Any]

MISSING = re.compile(r"(Image|Repository|Resource)NotFoundException|does not exist")
"""Errors of AWS for what does not exist. CloudFormation has no code for it."""

CONFIG = Config(retries={"mode": "standard", "total_max_attempts": 5})


class Aws:
    """Calls of AWS in one region.

    The region is the named one, that of ``AWS_REGION``, which boto3 does not read, what boto3 finds, or ``fallback``.
    """

    def __init__(self, region: str | None, fallback: str | None = None) -> None:
        named = region or os.environ.get("AWS_REGION")
        self._session = Session(region_name=named or Session().region_name or fallback)
        self._clients: dict[str, Any] = {}
        self.region: str | None = self._session.region_name

    @property
    def partition(self) -> str:
        partition: str = self._session.get_partition_for_region(self.region)
        return partition

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        """Make a call, and return its response. Raises ``ClientError`` and ``BotoCoreError``."""
        response: Response = getattr(self.client(service), xform_name(operation))(**parameters)
        return response

    def find(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response | None:
        """Make a call, and return its response, or None if the resource does not exist."""
        try:
            return self.call(service, operation, parameters)
        except ClientError as error:
            if MISSING.search(str(error)):
                return None
            raise

    def pages(self, service: str, operation: str, parameters: Mapping[str, object]) -> Iterator[Response]:
        """Yield each page of a list, none if the resource does not exist."""
        page: dict[str, object] = {}
        while found := self.find(service, operation, {**parameters, **page}):
            yield found
            if not found.get("nextToken"):
                return
            page = {"nextToken": found["nextToken"]}

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        if service not in self._clients:
            self._clients[service] = self._session.client(service, config=CONFIG)
        return self._clients[service]
