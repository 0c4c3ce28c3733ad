"""The account and the region that names and ARNs are made of."""

from msgspec import Struct


class AwsPlace(Struct, frozen=True):
    """An account and a region. Each field may be a placeholder of an infrastructure language.

    Attributes:
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        region: such as ``eu-central-1``.
        account: twelve digits.
    """

    partition: str
    region: str
    account: str

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN in the account and the region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def arn_of(self, service: str, kind: str, name: str) -> str:
        """Return the ARN of a resource that a setting names by its id, or by its ARN."""
        return name if name.startswith("arn:") else self.arn(service, f"{kind}/{name}")

    def role(self, name: str) -> str:
        """Return the ARN of a role."""
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"

    @property
    def registry(self) -> str:
        """Host of the account's registry of images."""
        suffix = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"
        return f"{self.account}.dkr.ecr.{self.region}.{suffix}"
