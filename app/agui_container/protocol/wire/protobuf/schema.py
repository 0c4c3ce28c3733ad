"""The messages of ``agui.proto``, as protoc compiled them into ``agui.binpb`` (``make proto``).

Rule: the compiled schema is data that belongs to the program, and its pool is its own: any protobuf runtime that an
agent's libraries need will do, and their messages may have the same names. Decision 0017.
"""

from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

POOL = DescriptorPool()
for _file in FileDescriptorSet.FromString(Path(__file__).with_name("agui.binpb").read_bytes()).file:
    POOL.Add(_file)

EVENT = POOL.FindMessageTypeByName("ag_ui.Event")
BASE_EVENT = POOL.FindMessageTypeByName("ag_ui.BaseEvent")

Event = GetMessageClass(EVENT)
"""One event: a message with exactly one of its fields set, that of the event's type."""
