#!/usr/bin/env python3
"""CPU time of `headrace serve` while pages watch a run that is being recorded.

usage: viewers_cost.py HEADRACE PIPELINE [--viewers 0,1,4,10] [--seconds 20] [--rounds 5]
Records PIPELINE, and has one server of it for each number of viewers, at the same time, so that they see the same run and the same
machine. A viewer asks as the page Overview does: for all of it at first and after each `report` event, and it reads every event. Prints
the median of the rounds and their range, in percent of a core; each server is first watched for ten seconds that do not count.
"""
import argparse
import gzip
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

PAGE = ("report?brief=1", "course?px=600", "histograms", "resources?px=200")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Viewer(threading.Thread):
    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.courses, self.pages, self.bad, self.ended = port, 0, 0, [], False

    def page(self, connection):
        for part in PAGE:
            connection.request("GET", f"/api/runs/1/{part}", headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            body = response.read()
            json.loads(gzip.decompress(body) if response.headers.get("Content-Encoding") == "gzip" else body)
            if response.status != 200:
                self.bad.append(f"{part}: {response.status}")
        self.pages += 1

    def run(self):
        pages = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.page(pages)
        events = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        events.request("GET", "/api/runs/1/events")
        answer = events.getresponse()
        while not self.ended:
            line = answer.readline().decode().strip()
            if line == "event: course":
                self.courses += 1
            elif line == "event: report":
                self.page(pages)


class Watched:
    def __init__(self, headrace, database, viewers):
        self.server = subprocess.Popen([headrace, "serve", "--db", database, "--port", "0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        port = int(self.server.stdout.readline().split(":")[2].split("/")[0])
        self.viewers = [Viewer(port) for _ in range(viewers)]
        for viewer in self.viewers:
            viewer.start()
        self.shares = []

    def begin(self):
        self.at, self.cpu = time.monotonic(), cpu_seconds(self.server.pid)

    def end(self):
        self.shares.append(100 * (cpu_seconds(self.server.pid) - self.cpu) / (time.monotonic() - self.at))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("pipeline")
    parser.add_argument("--viewers", default="0,1,4,10")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    numbers = [int(each) for each in arguments.viewers.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/live.db"
        length = 20 + arguments.seconds * arguments.rounds
        recorder = subprocess.Popen([arguments.headrace, "run", arguments.pipeline, "--db", database, "--duration", f"{length:.0f}s",
                                     "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watched = []
        try:
            time.sleep(5)
            watched = [Watched(arguments.headrace, database, each) for each in numbers]
            time.sleep(10)
            for _ in range(arguments.rounds):
                for one in watched:
                    one.begin()
                time.sleep(arguments.seconds)
                for one in watched:
                    one.end()
            if recorder.poll() is not None:
                raise SystemExit("the recording ended too soon")
            for number, one in zip(numbers, watched):
                courses, pages = sum(v.courses for v in one.viewers), sum(v.pages for v in one.viewers)
                bad = [text for v in one.viewers for text in v.bad]
                if bad or (number and (courses < number * arguments.rounds or pages < 2 * number)):
                    raise SystemExit(f"{number} viewers saw {courses} courses and {pages} pages: {bad[:3]}")
                print(f"{number} viewers: {statistics.median(one.shares):.2f} % of a core [{min(one.shares):.2f}, {max(one.shares):.2f}], "
                      f"{courses} events with windows, {pages} pages")
        finally:
            for one in watched:
                for viewer in one.viewers:
                    viewer.ended = True
                one.server.terminate()
                one.server.wait()
            recorder.terminate()
            recorder.wait()


if __name__ == "__main__":
    main()
