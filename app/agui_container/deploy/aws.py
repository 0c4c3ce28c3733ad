"""Calls of AWS through boto3, with one exception for what AWS refuses."""

import os
import re
from collections.abc import Mapping
from typing import Any

from boto3.session import Session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

Response = dict[str, Any]

MISSING = {
    *("NoSuchBucket", "NoSuchEntity", "NoSuchKey", "NoSuchTagSet", "404"),
    *("ImageNotFoundException", "RepositoryNotFoundException", "ResourceNotFoundException"),
}
"""Codes of AWS for what does not exist."""

CONFIG = Config(retries={"mode": "standard", "total_max_attempts": 5})


class AwsError(Exception):
    """AWS refused a call, or cannot be reached. The message is the line to show.

    Attributes:
        code: of AWS, or the name of botocore's exception.
    """

    def __init__(self, operation: str, code: str, message: str) -> None:
        super().__init__(f"{operation}: {code}: {message}")
        self.code = code


class Aws:
    """Calls of AWS in one region.

    Args:
        region: that is named. Otherwise it is that of ``AWS_REGION``, which boto3 does not read, or what boto3 finds.
        fallback: region where there is none of these.
    """

    def __init__(self, region: str | None, fallback: str | None = None) -> None:
        named = region or os.environ.get("AWS_REGION")
        self._session = Session(region_name=named or Session().region_name or fallback)
        self._clients: dict[str, Any] = {}

    @property
    def region(self) -> str | None:
        """The region, or None if nothing names one."""
        region: str | None = self._session.region_name
        return region

    @property
    def partition(self) -> str:
        """The partition of the region."""
        partition: str = self._session.get_partition_for_region(self.region)
        return partition

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        """Make a call, and return its response. Raises ``AwsError``."""
        try:
            client = self.client(service)
            response: Response = getattr(client, method_of(operation))(**parameters)
        except ClientError as error:
            found = error.response["Error"]
            raise AwsError(operation, found["Code"], found.get("Message", "")) from None
        except BotoCoreError as error:
            raise AwsError(operation, type(error).__name__, str(error)) from None
        return response

    def find(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response | None:
        """Make a call, and return its response, or None if the resource does not exist. Raises ``AwsError``."""
        try:
            return self.call(service, operation, parameters)
        except AwsError as error:
            if error.code in MISSING:
                return None
            raise

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Return the client of a service."""
        if service not in self._clients:
            self._clients[service] = self._session.client(service, config=CONFIG)
        return self._clients[service]


def method_of(operation: str) -> str:
    """Return the name of boto3's method."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operation).lower()
