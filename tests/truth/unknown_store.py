#!/usr/bin/env python3
"""unknown_store.py HEADRACE [one_run|probed|requests ...]: servers of which one run does not tell what they can give.

One answers late, the other gives so many bytes a second in all. Seen with one thread, both make the reader wait. So the plan for each
holds that nothing is gained; with eight threads the first gives several times as much, the second the same, both within what was
promised; and the report of the second then names the store, with its most.

A run may probe: it gives its fetching stage more threads for a moment, so that one run tells the two apart.

A third serves so many requests a second, whatever their size, and is read in many small ones: the first page then has fewer and longer
reads tried, and not threads, and what they bring is within what was said.
"""
import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

LATE_S = 0.06
BYTES_PER_S = 12e6
REQUESTS_PER_S = 200


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder, late_s, bytes_per_s, requests_per_s=0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.late_s, self.bytes_per_s = folder, late_s, bytes_per_s
        self.request_s = 1 / requests_per_s if requests_per_s else 0
        self.lock, self.free_at = threading.Lock(), 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # clients that go away are no fault

    def wait_for_room(self, seconds):
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + seconds
            wait = self.free_at - now
        time.sleep(wait)

    def url(self, name):
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = pathlib.Path(self.server.folder, self.path.lstrip("/"))
        size = path.stat().st_size
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        first, last = 0, size - 1
        if wanted and wanted[1]:
            first, last = int(wanted[1]), int(wanted[2] or size - 1)
        elif wanted:
            first = size - int(wanted[2])
        time.sleep(self.server.late_s)
        if self.server.request_s:
            self.server.wait_for_room(self.server.request_s)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(first)
            left = last - first + 1
            while left > 0:
                piece = file.read(min(left, 65536))
                left -= len(piece)
                if self.server.bytes_per_s:
                    self.server.wait_for_room(len(piece) / self.server.bytes_per_s)
                self.wfile.write(piece)


def run(headrace, folder, arguments):
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    result = subprocess.run([headrace, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    if result.returncode not in (0, 4):
        sys.exit(f"headrace {' '.join(arguments)}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def main():
    headrace = os.path.abspath(sys.argv[1])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-store-"))
    of = functools.partial(run, headrace, folder)
    of(["generate", "rm1", "-o", "t", "--rows", "6000"])
    faults = []

    def check(holds, what):
        print(("ok   " if holds else "FAIL ") + what)
        if not holds:
            faults.append(what)

    def holds(gain, measured):
        """What others use of the cores may differ between the two runs by a good part of the rate."""
        return (1 + gain["low"]) / 1.2 <= 1 + measured <= 1.4 * (1 + gain["high"])

    def rate_with(name, server, *settings, seconds="5s", options=("--no-probe",)):
        chosen = [word for setting in settings for word in ("--set", setting)]
        of(["run", "t/pipeline.toml", "--db", f"{name}.db", "--quiet", "--duration", seconds, *options, "--set", "source.epochs=0",
            "--set", "pipeline.batch_rows=128", "--set", f"source.table={server.url('part-00000.dwrf')}", *chosen])
        rate = of(["query", "--db", f"{name}.db", "--format", "csv",
                   "SELECT steps_count * 1e9 / wall_ns FROM step_summary ORDER BY run_id DESC LIMIT 1"])
        return float(rate.split()[-1])

    def was_probed(name):
        rows = of(["query", "--db", f"probed-{name}.db", "--format", "csv",
                   "SELECT many_rows_per_s / few_rows_per_s AS times FROM store_probe"]).split()[1:]
        if rows:
            print(f"     {name}: twice the threads got {rows[0]} times the rows")
        else:
            print(f"{name}: not tried: others took the cores, so that before and after the probe differ")
        return bool(rows)

    def probed():
        """One run each, which gives its fetching stage more threads for a moment."""
        late, full = Server(folder / "t", LATE_S, 0), Server(folder / "t", 0.002, 2 * BYTES_PER_S)
        rate_with("probed-late", late, seconds="8s", options=())
        if not was_probed("late"):
            return
        what_if = json.loads(of(["plan", "latest", "--db", "probed-late.db", "--json", "--what-if", "fetch.parallelism=2"]))
        gain = what_if["gain_interval"]
        check(gain["low"] > 0.2, f"late: so two threads are sure to gain: [{gain['low']:.2f}, {gain['high']:.2f}]")
        once = rate_with("probed-late", late)  # without the moment in which it had two threads
        measured = rate_with("probed-late", late, "fetch.parallelism=2") / once - 1
        check(holds(gain, measured), f"late: they gain {measured:+.2f}")
        rate_with("probed-full", full, seconds="12s", options=())
        if not was_probed("full"):
            return
        report = " ".join(of(["report", "latest", "--db", "probed-full.db"]).split())
        # Beside other programs it may not be sure that it is the store alone.
        limit = report[report.index(" limit "):report.index(" why ")]
        is_alone = limit.startswith(" limit the store of fetch") and "as 2 threads for" in report
        is_named = is_alone or ("the store of fetch" in limit and "BUSY MACHINE" in report)
        check(is_named, f"full: one run names the store as the limit:{limit}")
        late.shutdown()
        full.shutdown()

    def fewer_requests():
        server = Server(folder / "t", 0.002, 0, REQUESTS_PER_S)
        many = rate_with("rated", server, "source.coalesce_gap=0")
        page = " ".join(of(["report", "latest", "--db", "rated.db"]).split())
        said = re.search(r'fix .*?coalesce_gap = "(\w+)".*?\[(-?\d+), (-?\d+)\] predicted', page)
        check(said is not None, "rated: the first page has fewer and longer reads tried")
        if said is not None:
            gain = rate_with("rated", server, f"source.coalesce_gap={said[1]}") / many - 1
            check(int(said[2]) <= 100 * gain <= 1.4 * (100 + int(said[3])) - 100,
                  f"rated: they gain {100 * gain:+.0f} %, of [{said[2]}, {said[3]}] said")
        rate_with("rated", server, "source.coalesce_gap=0", "fetch.parallelism=8")
        page = " ".join(of(["report", "latest", "--db", "rated.db"]).split())
        check('coalesce_gap = "' in page, "rated: seen with eight threads, longer reads are tried, too")
        server.shutdown()

    def one_run():
        for name, late_s, bytes_per_s in (("late", LATE_S, 0), ("full", 0.002, BYTES_PER_S)):
            server = Server(folder / "t", late_s, bytes_per_s)

            def record(threads):
                return rate_with(name, server, f"fetch.parallelism={threads}")

            once = record(1)
            what_if = json.loads(of(["plan", "latest", "--db", f"{name}.db", "--json", "--what-if", "fetch.parallelism=8"]))
            gain = what_if["gain_interval"]
            check(gain["low"] <= 0 and gain["high"] > 1,
                  f"{name}: one run promises from nothing to several times the rate: [{gain['low']:.2f}, {gain['high']:.2f}]")
            first_page = of(["report", "latest", "--db", f"{name}.db"])
            check("may have no more to give" in " ".join(first_page.split()), f"{name}: the first page says that one run cannot tell")
            eight = record(8)
            measured = eight / once - 1
            check(holds(gain, measured), f"{name}: eight threads gain {measured:+.2f}, as was said")
            report = " ".join(of(["report", "latest", "--db", f"{name}.db"]).split())
            named = "limit the store of fetch" in report
            check(named == (name == "full"), f"{name}: the store is {'' if named else 'not '}named as the limit afterwards")
            server.shutdown()

    parts = {"one_run": one_run, "probed": probed, "requests": fewer_requests}
    for part in sys.argv[2:] or parts:
        parts[part]()
    if faults:
        print(f"kept: {folder}")
        sys.exit(1)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


if __name__ == "__main__":
    main()
