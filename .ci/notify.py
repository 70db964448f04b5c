"""`python3 .ci/notify.py COMMAND...` is a service manager as systemd: it starts the command with a socket for messages,
waits until it is ready and has reported twice that it lives, ends it by SIGTERM, and wants to hear that it stops. The
messages come through the program systemd-notify, as under systemd."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(path)
    manager.settimeout(60)
    os.set_inheritable(manager.fileno(), False)
    begun = time.monotonic()
    environment = {**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"}
    child = subprocess.Popen(sys.argv[1:], env=environment, stdout=subprocess.DEVNULL)
    heard = []

    def listen(until):
        while not until():
            data, descriptors, _, _ = socket.recv_fds(manager, 4096, 4)
            for descriptor in descriptors:
                # BARRIER=1: systemd-notify waits until its messages are read.
                os.close(descriptor)
            heard.extend(line for line in data.decode().splitlines() if line != "BARRIER=1")

    try:
        listen(lambda: heard.count("WATCHDOG=1") >= 2)
        assert heard.index("READY=1") < heard.index("WATCHDOG=1"), heard
        print(f"ready and alive after {time.monotonic() - begun:.1f} s: {heard}")
        child.send_signal(signal.SIGTERM)
        listen(lambda: "STOPPING=1" in heard)
        assert child.wait(60) == 0, child.returncode
        print("it said that it stops, and did")
    finally:
        child.kill()
