"""moto's S3 on a port of loopback that the system chooses, one request at a time: `python s3_program.py`.

`python -m moto.server` looks whether a name is free, and writes it later, while other threads do the same: of
eight conditional puts of 1 MB at once it let two through, in one of fifty rounds. S3 lets one through. So a lock
is held around each request. Its body is read before, so that a client that stalls holds up nobody else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.exceptions import ClientDisconnected
from werkzeug.serving import make_server
from werkzeug.wsgi import get_input_stream

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class OneAtATime:
    """moto, as an application of WSGI, with a lock around it."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            body = get_input_stream(environ).read()
        except ClientDisconnected as error:
            # A put that breaks off leaves nothing, as on S3.
            return error.get_response(environ)(environ, start_response)
        environ["wsgi.input"] = BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        with self._lock:
            answer: Iterable[bytes] = self._moto(environ, start_response)
            return answer


def main() -> None:
    """Say the port, and serve until killed."""
    server = make_server("127.0.0.1", 0, OneAtATime(), threaded=True, request_handler=MotoRequestHandler)
    print(f"listening on port {server.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
