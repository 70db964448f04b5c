"""Replays recorded cases against a server and holds areas to the share that must pass; prints the rest.

usage: cases.py REPLAY_SCRIPT HTTP_PORT LINE_PORT HEALTH_PORT"""

import re
import subprocess
import sys

LEAST_PERCENT = {"ilp": 97.0, "system": 97.0}

script, http, line, health = sys.argv[1:]
command = [sys.executable, script, f"http://127.0.0.1:{http}", "--ilp", line, "--min", health]
output = subprocess.run(command, capture_output=True, text=True).stdout
seen = {}
for text in output.splitlines():
    match = re.match(r"(\w+) +(\d+) +(\d+) +([\d.]+)%", text)
    if match:
        seen[match[1]] = float(match[4])
        print(f"{match[1]:10} {match[2]:>5} passed {match[3]:>5} failed {match[4]:>7} %")
for area, least in LEAST_PERCENT.items():
    if seen.get(area, 0.0) < least:
        print(f"FAILED: {area} must reach {least} %")
        sys.exit(1)
