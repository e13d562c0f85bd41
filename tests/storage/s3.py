#!/usr/bin/env python3
"""A table in a real S3 store, SeaweedFS, that the test starts itself.

usage: s3.py HEADRACE

Runs where HEADRACE_WEED, or the path, has the `weed` binary (scripts/test_s3.sh fetches one); else it is skipped.
"""
import datetime
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HEADRACE = os.path.abspath(sys.argv[1])
WEED = os.environ.get("HEADRACE_WEED") or shutil.which("weed")
KEY, SECRET = "headracetest", "a/secret+key"
LIMIT_S = 300  # only a hang takes as long


def put(endpoint, path, body):
    """A signed PUT, by an implementation of its own."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    day, host = now[:8], endpoint.removeprefix("http://")
    digest = hashlib.sha256(body).hexdigest()
    canonical = (f"PUT\n{path}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n"
                 f"host;x-amz-content-sha256;x-amz-date\n{digest}")
    scope = f"{day}/us-east-1/s3/aws4_request"
    key = ("AWS4" + SECRET).encode()
    for part in (day, "us-east-1", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    request = urllib.request.Request(endpoint + path, data=body, method="PUT", headers={
        "x-amz-date": now, "x-amz-content-sha256": digest,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{scope},"
                         f"SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={signature}"})
    urllib.request.urlopen(request, timeout=LIMIT_S).close()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start(folder):
    with open("s3.json", "w", encoding="utf-8") as file:
        json.dump({"identities": [{"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                                   "actions": ["Admin", "Read", "List", "Write"]}]}, file)
    ports = free_ports(8)
    names = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc",
             "s3.port", "s3.port.grpc")
    log = open("weed.log", "w", encoding="utf-8")
    weed = subprocess.Popen(
        [WEED, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir", folder, "-filer", "-s3", "-s3.config", "s3.json",
         "-volume.max=10", "-master.volumeSizeLimitMB=64"] + [f"-{name}={port}" for name, port in zip(names, ports)],
        stdout=log, stderr=log)
    endpoint = f"http://127.0.0.1:{ports[6]}"
    for _ in range(1500):
        try:
            put(endpoint, "/tables", b"")
            return weed, endpoint
        except (OSError, urllib.error.URLError):
            assert weed.poll() is None, open("weed.log", encoding="utf-8").read()[-2000:]
            time.sleep(0.2)
    raise AssertionError("the store does not answer: " + open("weed.log", encoding="utf-8").read()[-2000:])


def run(table, endpoint, secret=SECRET, *settings):
    environment = dict(os.environ, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=secret)
    if not secret:
        environment.pop("AWS_ACCESS_KEY_ID")
    command = [HEADRACE, "run", "t/pipeline.toml", "--no-record", "--checksum", "--json"]
    for setting in (f"source.table={table}", f"source.remote.endpoint={endpoint}", "consumer.step=0", *settings):
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)


def multiset(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["checksum"]["multiset"]


def main():
    if not WEED:
        print("skipped: no weed binary (scripts/test_s3.sh fetches SeaweedFS and runs this test)")
        sys.exit(77)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    weed = None
    try:
        os.mkdir("store")
        weed, endpoint = start("store")
        subprocess.run([HEADRACE, "generate", "rm1", "-o", "t", "--rows", "8192", "--features", "0.02", "--seed", "3"],
                       check=True, capture_output=True)
        files = sorted(name for name in os.listdir("t") if name.endswith(".dwrf"))
        for name in files:
            with open(f"t/{name}", "rb") as file:
                content = file.read()
            put(endpoint, f"/tables/a%20table/{name}", content)
        put(endpoint, "/tables/a%20table/notes.txt", b"no table file")
        put(endpoint, "/tables/a%20table/below/part-00000.dwrf", b"not of this folder")
        expected = multiset(run(os.path.abspath("t"), endpoint))
        assert multiset(run("s3://tables/a table", endpoint)) == expected
        assert multiset(run("s3://tables/a table/", endpoint, SECRET, "source.coalesce_gap=0", "fetch.parallelism=3")) == expected
        one = run(f"s3://tables/a table/{files[0]}", endpoint)
        assert one.returncode == 0, one.stderr
        for table, secret, code, text in (
                ("s3://tables/a table", "a wrong secret", 6, f"refuses the key of id {KEY}"),
                ("s3://tables/a table", "", 6, "AWS_ACCESS_KEY_ID"),
                (f"s3://tables/nothing/{files[0]}", SECRET, 5, "no such object"),
                ("s3://tables/nothing", SECRET, 5, "holds no .dwrf file"),
                ("s3:///x", SECRET, 2, "is not s3://BUCKET/KEY")):
            done = run(table, endpoint, secret)
            assert done.returncode == code and text in done.stderr, (table, done.returncode, done.stderr)
            assert SECRET not in done.stderr and "a wrong secret" not in done.stderr, done.stderr
        print("S3: ok", flush=True)
    finally:
        if weed:
            weed.kill()  # asked to end it takes its time, and its data is thrown away
            weed.wait()
        os.chdir("/")
        shutil.rmtree(folder)


main()
