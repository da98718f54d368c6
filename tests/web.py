"""A server on loopback that misbehaves on request, and hand-made archives, for the tests of downloads."""

import gzip
import io
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web:
    """What is served: {path: [answer to the first question, to the second, ...]}, the last for all further ones."""

    def __init__(self, address: str):
        self.address, self.answers, self.asked = address, {}, []
        self.released = threading.Event()  # set at the end, for those that stall

    def serve(self, name: str, *answers) -> str:
        self.answers[f"/{name}"] = list(answers)
        return f"{self.address}/{name}"


@contextmanager
def running():
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            web.asked.append(dict(self.headers))
            answers = web.answers[self.path]
            self.close_connection = True
            (answers.pop(0) if len(answers) > 1 else answers[0])(self, web)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web = Web(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield web
    finally:
        web.released.set()
        server.shutdown()
        server.server_close()


def head(handler, status: int, length: int | None, **headers):
    handler.send_response(status)
    handler.send_header("Connection", "close")
    if length is not None:
        handler.send_header("Content-Length", str(length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def whole(body: bytes):
    return says(200, body)


def broken_off(body: bytes, after: int, stall: bool = False):
    """The first bytes of it, then nothing more: the connection ends, or stands."""

    def answer(handler, web):
        head(handler, 200, len(body))
        handler.wfile.write(body[:after])
        handler.wfile.flush()
        if stall:
            web.released.wait(20)

    return answer


def says(status: int, body: bytes = b"", length: int | None = None, **headers):
    def answer(handler, web):
        head(handler, status, len(body) if length is None else length, **headers)
        handler.wfile.write(body)

    return answer


def zipped(files: dict[str, bytes | str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def tarred(files: dict[str, bytes | str | tarfile.TarInfo]) -> bytes:
    """A .tar.gz; in place of a content a TarInfo stands for a link or a device."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            content = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
