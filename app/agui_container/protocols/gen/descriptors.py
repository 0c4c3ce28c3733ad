"""The compiled files of proto/, in a descriptor pool of their own, and the classes of their messages.

Rule: nothing is registered in protobuf's default pool. An agent may import packages that register the same services
there, such as ``grpc_health``, before this server or after it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

COMPILED = Path(__file__).with_name("services.binpb")

POOL = DescriptorPool()
"""Files of ``COMPILED``, with those of Google that they import."""

for _file in FileDescriptorSet.FromString(COMPILED.read_bytes()).file:
    POOL.AddSerializedFile(_file.SerializeToString())


def load(name: str) -> dict[str, Any]:
    """Return the names of a compiled file, as protoc's own modules have them: DESCRIPTOR, messages, enums, values."""
    file = POOL.FindFileByName(name)
    names: dict[str, Any] = {"DESCRIPTOR": file}
    for message in file.message_types_by_name.values():
        names[message.name] = GetMessageClass(message)
    for enum in file.enum_types_by_name.values():
        names[enum.name] = EnumTypeWrapper(enum)
        names.update({value.name: value.number for value in enum.values})
    return names


if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Struct
    from google.protobuf.timestamp_pb2 import Timestamp
else:
    Struct = GetMessageClass(POOL.FindMessageTypeByName("google.protobuf.Struct"))
    Timestamp = GetMessageClass(POOL.FindMessageTypeByName("google.protobuf.Timestamp"))

__all__ = ["POOL", "Struct", "Timestamp", "load"]
