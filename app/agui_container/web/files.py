"""HTTP routes of files: a client uploads one as it is or as a form, and reads or deletes its own.

Rules:

- An upload is read piece by piece. What is large waits on the disk, never in memory.
- A file may be anything that a user has, also a page with scripts. A browser saves it and never shows it as a page of
  this server.
"""

import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, cast
from urllib.parse import quote

from anyio import to_thread
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.engine.engine import Engine
from agui_container.protocol.errors import validation_error
from agui_container.web.caller_middleware import caller_of
from agui_container.web.requests import BodyChunks, RawPathRoute, in_time
from agui_container.web.rest import NO_STORE, json_response
from agui_core.commands import FilesDelete

FILES = "/files"
FILE = "/files/{fileId}"
IN_MEMORY = 1_000_000
"""Bytes of an upload that are kept in memory. A larger one waits on the disk."""

FORM = "multipart/form-data"
DOWNLOAD = {**NO_STORE, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
NO_FILE = "The form has no file. Send one part with a file name, or the bytes themselves as the body."


def routes(service: Engine, *, max_body: int) -> list[BaseRoute]:
    async def put(request: Request) -> Response:
        name, kind, content = await in_time(service, read_upload(request, max_body))
        with content:
            return json_response(await service.files.put(caller_of(request), name, kind, content))

    async def get(request: Request) -> Response:
        file = await service.files.read(caller_of(request), request.path_params["fileId"])
        disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name or file.id, safe='')}"}
        return Response(file.data, headers={**DOWNLOAD, **disposition, "Content-Type": file.mime_type})

    async def delete(request: Request) -> Response:
        command = FilesDelete(file_id=request.path_params["fileId"])
        return json_response(await service.files.answer(caller_of(request), command))

    return [
        Route(FILES, put, methods=["POST"]),
        RawPathRoute(FILE, get),
        RawPathRoute(FILE, delete, methods=["DELETE"]),
    ]


async def read_upload(request: Request, max_body: int) -> tuple[str, str, BinaryIO]:
    """Return the name, the type and the content of an upload. The caller closes the content."""
    chunks, kind = BodyChunks(request, max_body), request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != FORM:
        return request.query_params.get("name", ""), kind, await read_raw(chunks)
    upload = await read_form(request, chunks)
    return upload.filename or "", upload.content_type or "", upload.file


async def read_raw(chunks: AsyncIterator[bytes]) -> BinaryIO:
    content = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the caller closes it
    try:
        async for chunk in chunks:
            await to_thread.run_sync(content.write, chunk)
    except BaseException:
        content.close()
        raise
    return cast("BinaryIO", content)


async def read_form(request: Request, chunks: AsyncIterator[bytes]) -> UploadFile:
    """Return the file of a form. Raises ``AppError`` VALIDATION_ERROR for a broken form, or one without a file."""
    stream = (chunk async for chunk in chunks)
    try:
        form = await MultiPartParser(request.headers, stream, max_files=1, max_fields=10).parse()
    except MultiPartException as error:
        raise validation_error(f"The form cannot be read: {error.message.rstrip('.')}.") from None
    for part in form.values():
        if isinstance(part, UploadFile):
            return part
    raise validation_error(NO_FILE)
