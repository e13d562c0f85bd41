#!/usr/bin/env python3
"""How long a GET takes at `headrace serve` while others keep it waiting.

usage: stalled_viewers.py HEADRACE DATABASE [--run ID] [--gets N]   ID: a run that is being recorded, or its streams end at once
Prints the median and the largest time of N GETs of /healthz and of a run's course: alone, with 200 event streams that nobody reads,
with 200 requests that never end, and the server's memory.
"""
import argparse
import http.client
import pathlib
import socket
import statistics
import subprocess
import time

MANY = 200


def get(port, path):
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return time.perf_counter() - begin, response.status, len(body)


def times(port, run, gets):
    text = []
    for path in ("/healthz", f"/api/runs/{run}/course"):
        took = []
        for _ in range(gets):
            seconds, status, _ = get(port, path)
            assert status == 200, (path, status)
            took.append(1000 * seconds)
        text.append(f"{path} {statistics.median(took):.1f} ms (largest {max(took):.1f})")
    return "; ".join(text)


def opened(port, request):
    sockets = []
    for _ in range(MANY):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(request.encode())
        sockets.append(one)
    time.sleep(2)
    return sockets


def rss_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("database")
    parser.add_argument("--run", type=int, default=1)
    parser.add_argument("--gets", type=int, default=50)
    arguments = parser.parse_args()
    server = subprocess.Popen([arguments.headrace, "serve", "--db", arguments.database, "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(server.stdout.readline().split(":")[2].split("/")[0])
        host = f"Host: 127.0.0.1:{port}\r\n"
        get(port, f"/api/runs/{arguments.run}/report")
        print("alone:", times(port, arguments.run, arguments.gets))
        held = opened(port, f"GET /api/runs/{arguments.run}/events HTTP/1.1\r\n{host}\r\n")
        print(f"{MANY} streams that nobody reads:", times(port, arguments.run, arguments.gets))
        for one in held:
            one.close()
        held = opened(port, "GET / HTTP/1.1\r\nHost: 127")
        print(f"{MANY} requests that never end:", times(port, arguments.run, arguments.gets))
        print(f"memory: {rss_mib(server.pid):.0f} MiB")
        for one in held:
            one.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
