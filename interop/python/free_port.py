"""Makes servers that choose a fixed port listen on a free one, and print it."""
import socket
import sys

import uvicorn


def on_free_port(path, run):
    serve = uvicorn.Server.serve

    async def serve_there(self, sockets=None):
        listener = socket.create_server(("127.0.0.1", 0))
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}{path}", file=sys.stderr, flush=True)
        await serve(self, [listener])

    uvicorn.Server.serve = serve_there
    run()
