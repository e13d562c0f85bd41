#!/usr/bin/env python3
"""Tables behind HTTP, from a server that misbehaves in every way a server can.

usage: remote.py HEADRACE

The first part of a URL's path says how: /ok/, /truncate-N/, /stall/, /busy-N/ (503 so many times),
/range/ (answers for another range), /whole/ (knows no ranges), /changing/, /closing/, /missing/,
/forbidden/, /shrinking/, /moved/, /drip/ (100 bytes at a time), /pause/ (half of a range, and the rest when the test says so).

No figure here is a time: a server that takes seconds to answer, as on a busy machine, must change nothing.
"""
import collections
import http.server
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HEADRACE = os.path.abspath(sys.argv[1])
# Only a hang takes as long.
LIMIT_S = 300


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        self.seen = collections.Counter()  # requests by (mode, file, range)
        self.requests = 0
        self.half_sent, self.go_on = threading.Event(), threading.Event()

    def handle_error(self, request, client_address):
        pass  # clients that go away are part of the test


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every body waits 40 ms for the acknowledgement of its headers

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        server = self.server
        _, mode, name = self.path.split("/", 2)
        mode, _, number = mode.partition("-")
        number = int(number or 0)
        wanted = self.headers.get("Range")
        with server.lock:
            server.requests += 1
            server.seen[(mode, name, wanted)] += 1
            nth, total = server.seen[(mode, name, wanted)], server.requests
        if mode == "missing":
            return self.answer(404)
        if mode == "forbidden":
            return self.answer(403, b"<Error>no</Error>")
        if mode == "moved":
            return self.answer(301, headers=[("Location", "/ok/" + name)])
        if mode == "busy" and nth <= number:
            return self.answer(503, b"later", [("Retry-After", "0")])
        try:
            with open(os.path.join(server.folder, name), "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return self.answer(404)
        if not wanted or mode == "whole":
            return self.answer(200, content)
        first, last = (int(x) for x in wanted.removeprefix("bytes=").split("-"))
        if mode == "shrinking" and total > 6:
            content = content[: len(content) // 2]
        if first >= len(content):
            return self.answer(416, headers=[("Content-Range", f"bytes */{len(content)}")])
        body = content[first : last + 1]
        etag = '"v1"' if mode != "changing" or total <= 6 else '"v2"'
        if mode == "shrinking":
            etag = '"same"'
        if self.headers.get("If-Match", etag) != etag and random.random() < 0.5:
            return self.answer(412)  # else: a server that does not know If-Match
        told = first + 1 if mode == "range" and nth == 1 else first
        headers = [("Content-Range", f"bytes {told}-{first + len(body) - 1}/{len(content)}"), ("ETag", etag)]
        with server.lock:
            server.seen[(mode, name, last)] += 1
            # A request for the rest of a range ends where the range does.
            first_try = server.seen[(mode, name, last)] == 1
        if mode == "drip" and len(body) > 100:
            first_try, number = True, 100
        if mode in ("truncate", "drip") and first_try and len(body) > number:
            self.answer(206, body[:number], headers, len(body))
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if mode == "stall" and nth == 1 and total % 3 == 0:
            self.answer(206, body[: len(body) // 2], headers, len(body))
            time.sleep(1.5)
            self.close_connection = True
            return
        if mode == "pause" and not server.half_sent.is_set() and len(body) > 1000:
            self.answer(206, body[: len(body) // 2], headers, len(body))
            server.half_sent.set()
            server.go_on.wait(LIMIT_S)
            return self.wfile.write(body[len(body) // 2 :])
        self.answer(206, body, headers)
        if mode == "closing":  # without saying so
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)


def run(table, *settings, database=None, environment=None):
    command = [HEADRACE, "run", "t/pipeline.toml", "--checksum", "--json", "--set", f"source.table={table}"]
    command += ["--db", database] if database else ["--no-record"]
    # The server shares this machine: only where a stall is what is tested may a slow answer be one.
    keys = {"consumer.step": "0", "source.remote.stall": "100s", "source.remote.timeout": "200s"}
    keys.update(setting.split("=", 1) for setting in settings)
    for key, value in keys.items():
        command += ["--set", f"{key}={value}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)


def multiset(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["checksum"]["multiset"]


def refused(done, code, *texts):
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    for text in texts:
        assert text in done.stderr, (text, done.stderr)


def figures(database):
    rows = subprocess.run(
        [HEADRACE, "query", "--db", database, "--format", "csv",
         "SELECT operator, completions_count, bytes_in_bytes, bytes_out_bytes FROM operator_summary "
         "WHERE run_id = (SELECT max(run_id) FROM run_summary)"],
        capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    return {row.split(",")[0]: [int(x or 0) for x in row.split(",")[1:]] for row in rows}


def check_faults(server, base, expected):
    for settings in ((), ("source.coalesce_gap=0",), ("source.remote.connections=1",), ("fetch.parallelism=3",)):
        assert multiset(run(f"{base}/ok/part-00000.dwrf", *settings)) == expected, settings
    assert multiset(run(f"{base}/ok/")) == expected, "files.json"
    for mode in ("range", "closing", "busy-2"):
        server.reset()
        assert multiset(run(f"{base}/{mode}/part-00000.dwrf", "source.remote.retries=2")) == expected, mode
    server.reset()  # a third of the first tries stall; on a busy machine a repetition may seem to, too
    got = run(f"{base}/stall/part-00000.dwrf", "source.remote.stall=300ms", "source.remote.retries=100")
    assert multiset(got) == expected, "stall"
    for at in [0, 1, 2] + random.sample(range(3, 20000), 17):
        server.reset()
        assert multiset(run(f"{base}/truncate-{at}/part-00000.dwrf")) == expected, f"cut at {at}"
    refusals = [
        ("busy-3", 1, ("3 tries over", "the last: status 503", "part-00000.dwrf")),
        ("drip", 1, ("tries over", "the last:")),
        ("whole", 1, ("ignores ranges",)),
        ("changing", 5, ("changed while it was read",)),
        ("shrinking", 5, ("shorter than",)),
        ("missing", 5, ("no such object",)),
        ("forbidden", 6, ("refuses", "403")),
        ("moved", 1, ("301",)),
    ]
    for mode, code, texts in refusals:
        server.reset()
        refused(run(f"{base}/{mode}/part-00000.dwrf", "source.remote.retries=2", "source.coalesce_gap=0"), code, *texts)
    refused(run(f"{base}/ok/nothing/"), 5, "no such object")
    refused(run("http://user:word@127.0.0.1/t.dwrf"), 2, "must not hold credentials")
    refused(run("ftp://127.0.0.1/t.dwrf"), 2, "neither a path nor")
    refused(run(f"{base}/ok/part-00000.dwrf", "source.direct=true"), 2, "local files")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/t.dwrf"
        refused(run(nobody, "source.remote.retries=1"), 1, "2 tries over")


def check_accounts(server, base):
    """Requests, repetitions and bytes of the accounts are those that the server saw."""
    server.reset()
    assert run(f"{base}/ok/part-00000.dwrf", database="r.db").returncode == 0
    plain, asked = figures("r.db"), server.requests
    different = sum(isinstance(key[2], str) for key in server.seen)  # each refused once below
    server.reset()
    assert run(f"{base}/busy-1/part-00000.dwrf", database="r.db").returncode == 0
    busy = figures("r.db")
    assert server.requests == asked + different, (server.requests, asked, different)
    requests = plain["fetch.io"][0]
    assert 0 < requests < asked, "the tail and the stripes' footers are read besides"
    assert plain["fetch.retry"][0] == 0 and plain["fetch.retry"][1] == 0, plain["fetch.retry"]
    assert busy["fetch.io"][0] == 2 * requests, (busy["fetch.io"], requests)
    assert busy["fetch.retry"][0] == requests, busy["fetch.retry"]
    assert busy["fetch.retry"][1] == requests * len(b"later"), busy["fetch.retry"]
    assert busy["fetch.io"][2] == plain["fetch.io"][2] == plain["fetch"][1], "every byte is kept once"
    # A body cut short is resumed where it ended: nothing is read twice.
    server.reset()
    assert run(f"{base}/truncate-1000/part-00000.dwrf", database="r.db").returncode == 0
    cut = figures("r.db")
    assert cut["fetch.retry"][0] > 0 and cut["fetch.retry"][1] == 0, cut["fetch.retry"]
    assert cut["fetch.io"][2] == plain["fetch.io"][2], cut["fetch.io"]


def check_commands(base):
    """inspect, cat and layout say of a URL what they say of the file."""
    def said(command, place, *options, code=0):
        done = subprocess.run([HEADRACE, command, place, *options], capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == code, (command, place, done.stderr)
        return done.stdout if code == 0 else done.stderr
    here, there = os.path.abspath("t/part-00000.dwrf"), f"{base}/ok/part-00000.dwrf"
    assert said("cat", there, "--format", "canonical") == said("cat", here, "--format", "canonical") != ""
    columns, stripes = (json.loads(said("inspect", place, "--json")) for place in (here, there))
    assert columns["stripes"] == stripes["stripes"] and stripes["stripes"]
    whole, table = (json.loads(said("layout", place, "--pipeline", "t/pipeline.toml", "--json"))
                    for place in (os.path.abspath("t"), f"{base}/ok/"))
    assert whole["projection"] == table["projection"], (whole["projection"], table["projection"])
    for command in ("inspect", "cat", "layout"):
        for place, code, text in ((f"{base}/missing/part-00000.dwrf", 5, "no such object"),
                                  ("ftp://127.0.0.1/t.dwrf", 2, "neither a path nor"),
                                  ("s3://bucket/part.dwrf", 6, "403")):
            more = ["--endpoint", f"{base}/forbidden"] if place.startswith("s3") else []
            error = said(command, place, *more, code=code)
            assert text in error and error.count("\n") == 1, (command, place, error)


def check_tls(expected):
    if not shutil.which("openssl"):
        print("https: not tested, there is no openssl command")
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)
    server = Server("t")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    table = f"https://localhost:{server.server_address[1]}/ok/part-00000.dwrf"
    assert multiset(run(table, f"source.remote.ca_file={os.path.abspath('cert.pem')}")) == expected
    refused(run(table, "source.remote.retries=0"), 1, "certificate")
    server.shutdown()


def check_stop(base, server):
    """Ctrl-C ends a wait for a server that does not answer."""
    server.reset()
    done = subprocess.Popen([HEADRACE, "run", "t/pipeline.toml", "--no-record", "-q", "--set",
                             f"source.table={base}/busy-1000000/part-00000.dwrf", "--set", "source.remote.retries=1000"],
                            stderr=subprocess.PIPE)
    while server.requests == 0:
        assert done.poll() is None, done.stderr.read()
        time.sleep(0.01)
    done.send_signal(signal.SIGINT)
    assert done.wait(LIMIT_S) == 130, done.stderr.read()


def check_starved(base, server, expected):
    """A reader that got no CPU for longer than a stall takes what came meanwhile, instead of asking again."""
    server.reset()
    running = subprocess.Popen([HEADRACE, "run", "t/pipeline.toml", "--checksum", "--json", "--no-record",
                                "--set", "consumer.step=0", "--set", f"source.table={base}/pause/part-00000.dwrf",
                                "--set", "source.remote.stall=5s", "--set", "source.remote.timeout=200s",
                                "--set", "source.remote.retries=0"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.half_sent.wait(LIMIT_S), "no range was asked for"
    running.send_signal(signal.SIGSTOP)
    server.go_on.set()
    time.sleep(6)
    running.send_signal(signal.SIGCONT)
    out, error = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, error
    assert json.loads(out)["checksum"]["multiset"] == expected


def main():
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        os.environ.pop(name, None)
    seed = int(os.environ.get("SEED", time.time()))
    print(f"SEED={seed}")
    random.seed(seed)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    try:
        subprocess.run([HEADRACE, "generate", "rm1", "-o", "t", "--rows", "4096", "--features", "0.02", "--seed", "3"],
                       check=True, capture_output=True)
        files = sorted(name for name in os.listdir("t") if name.endswith(".dwrf"))
        with open("t/files.json", "w", encoding="utf-8") as index:
            json.dump({"files": files}, index)
        expected = multiset(run(os.path.abspath("t/part-00000.dwrf")))
        server = Server("t")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        check_faults(server, base, expected)
        check_accounts(server, base)
        check_stop(base, server)
        check_starved(base, server, expected)
        check_commands(base)
        check_tls(expected)
        print("remote tables: ok")
    finally:
        os.chdir("/")
        shutil.rmtree(folder)


main()
