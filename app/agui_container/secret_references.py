"""References to secrets: a value that is the ARN of a secret of AWS Secrets Manager stands for the secret.

Rule: boto3 is imported only if there is such a value. The form is that of ECS:
``arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME``, with ``:KEY`` behind it for one value of a secret that is JSON.
"""

import json
import re

PATTERN = r"(?P<arn>arn:aws[\w-]*:secretsmanager:(?P<region>[\w-]+):\d{12}:secret:[^:\s]+)(?::(?P<key>[^:\s]+))?"
REFERENCE = re.compile(PATTERN)


class SecretUnavailable(Exception):
    """A secret cannot be read. The message says why, and never has the secret."""


def read_secret(value: str) -> str:
    """Return the secret that a value refers to, and any other value as it is. Raises ``SecretUnavailable``."""
    found = REFERENCE.fullmatch(value)
    if found is None:
        return value
    from boto3.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - a slow import
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        client = Session().client("secretsmanager", region_name=found["region"])
        secret: object = client.get_secret_value(SecretId=found["arn"])["SecretString"]
    except ClientError as error:
        raise SecretUnavailable(f"the secret cannot be read: {error.response['Error']['Code']}") from None
    except (BotoCoreError, KeyError) as error:
        raise SecretUnavailable(f"the secret cannot be read: {error}") from None
    return str(secret) if found["key"] is None else part_of(str(secret), found["key"])


def part_of(secret: str, key: str) -> str:
    """Return one value of a secret that is JSON. Raises ``SecretUnavailable``."""
    try:
        return str(json.loads(secret)[key])
    except (ValueError, KeyError, TypeError):
        raise SecretUnavailable(f"the secret is no JSON object with the key {key}") from None
