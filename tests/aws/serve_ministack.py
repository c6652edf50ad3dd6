"""ministack on a loopback port that the kernel chooses. The port is the first line of stdout.

It ends when its stdin ends, so that it cannot outlive the test that started it, however that one dies.
"""

import asyncio
import os
import socket
import threading


def end_with_stdin():
    while os.read(0, 4096):
        pass
    os._exit(0)


def main():
    threading.Thread(target=end_with_stdin, daemon=True).start()
    # Bound before it is told to anybody: no other process can take the port in between.
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = listener.getsockname()[1]
    os.environ["GATEWAY_PORT"] = str(port)

    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app

    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    print(port, flush=True)
    asyncio.run(serve(app, config))


main()
