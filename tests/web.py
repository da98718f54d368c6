"""A server on loopback that misbehaves on request, and hand-made archives, for the tests of downloads."""

import gzip
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def served(*answers: tuple[int, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths asked of it so far.

    Args:
        answers: (status, body) to the first question, to the second, ...; the last one to all further ones. A body that
            ends in BREAK_OFF is announced as longer than it is.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = answers[min(len(asked), len(answers) - 1)]
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.removesuffix(BREAK_OFF))

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


BREAK_OFF = b"<here the connection breaks off>"


def zipped(files: dict[str | zipfile.ZipInfo, bytes | str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
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
