#!/usr/bin/env python3
"""Sound and damaged DWRF files through the whole command line.

damaged_files.py HEADRACE DAMAGE COUNT [--seed N] [--first N] [--jobs N] [--files FOLDER] [--keep FOLDER]

Every file goes through inspect, inspect --verify, cat (both formats), layout, rewrite and run. Whatever a
file holds, a command ends within 10 s with exit code 0 or 5 (or another that its --help gives for such a
file), says at most one line of error, uses less than 2 GiB, and no sanitizer stops it. The seed is printed;
the same seed gives the same files. Exit code: 0 if all held, 1 if not, 2 for a wrong call.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

LIMIT_S = 10
LIMIT_KB = 2 << 20
KEYS = "env:HEADRACE_FUZZ_KEYS"
FUZZ_KEYS = "fuzz 000102030405060708090a0b0c0d0e0f"
# 6: an encrypted column without its key; 7: a row too large for memory. A job whose columns a damaged schema lacks is a usage
# error, 2.
GOOD = {0, 5, 6, 7}


def run(command, seconds, environment):
    """Exit code (None: too slow), standard error, peak memory in KiB, hash of standard output."""
    with tempfile.TemporaryFile() as error:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=error,
                                 env=environment, start_new_session=True)
        timer = threading.Timer(seconds, lambda: os.killpg(child.pid, 9))
        timer.start()
        digest = hashlib.sha256()
        while part := child.stdout.read(1 << 16):
            digest.update(part)
        child.stdout.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        slow = not timer.is_alive()
        timer.cancel()
        error.seek(0)
        text = error.read(1 << 20).decode(errors="replace")
    return (None if slow else child.returncode), text, usage.ru_maxrss, digest.hexdigest()


def commands(headrace, file, pipeline, folder):
    """What a file is put through; every command stands for one of the reader's ways."""
    table = folder / "table"
    table.mkdir()
    os.link(file, table / "part-00000.dwrf")
    keys = ["--keys", KEYS]
    ways = {
        "inspect": [headrace, "inspect", file, *keys],
        "inspect --json": [headrace, "inspect", file, "--json"],
        "inspect --verify": [headrace, "inspect", file, "--verify", *keys],
        "cat": [headrace, "cat", file, "--no-verify", "--format", "canonical", *keys],
        "cat --skip-bad": [headrace, "cat", file, "--skip-bad", "--no-verify", *keys],
        "cat --offset": [headrace, "cat", file, "--offset", "1500", "--limit", "100", *keys],
        "layout": [headrace, "layout", table, "--features", *keys],
        "rewrite": [headrace, "rewrite", table, "-o", folder / "again", *keys],
    }
    if pipeline:
        (table / "pipeline.toml").write_text(pipeline)
        ways["layout --pipeline"] = [headrace, "layout", table, "--pipeline", table / "pipeline.toml"]
        ways["run"] = [headrace, "run", table / "pipeline.toml", "--no-record", "--quiet", "--set", "consumer.step=0"]
    return ways


def pipeline_of(headrace, file, environment):
    """A job on the file: the one beside it, or one that reads what a job can read of its columns."""
    beside = file.parent / "pipeline.toml"
    if beside.exists():
        return beside.read_text()
    about = json.loads(subprocess.run([headrace, "inspect", file, "--json"], stdout=subprocess.PIPE, check=True).stdout)
    kinds = {entry["node"]: entry["kind"] for entry in about["types"]}
    root = about["types"][0]
    features = {}
    for flat in about["stripes"][0]["flattened_maps"] if about["stripes"] else []:
        features[flat["column"]] = [key["key"] for key in flat["keys"][:20]]
    columns = []
    for name, node in zip(root.get("field_names", []), root.get("children", [])):
        if kinds[node] in ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean"):
            columns.append(name)
    reads = lambda what: subprocess.run([headrace, "layout", file, "--projection", what], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=environment).returncode == 0
    columns = [name for name in columns if reads(name)]
    features = {name: [key for key in keys if reads(f"{name}[{key}]")] for name, keys in features.items()}
    features = {name: keys for name, keys in features.items() if keys}
    if not columns and not features:
        return None
    return (f"pipeline = {{ name = \"damaged\", batch_rows = 512 }}\nsource = {{ table = \".\" }}\nconsumer = {{ step = \"0\" }}\n"
            "stage = [{ name = \"all\", operators = [\"fetch\", \"decompress\", \"decode\", \"extract\", \"batch\"] }]\n"
            f"[projection]\ncolumns = {json.dumps(columns)}\n[projection.maps]\n" +
            "".join(f"{json.dumps(name)} = {json.dumps(keys)}\n" for name, keys in features.items()))


def complaint(name, code, error, memory_kb, limit_s):
    if code is None:
        return f"takes more than {limit_s} s"
    if code not in GOOD and not (code == 2 and name in ("run", "layout --pipeline")):
        return f"exit code {code}"
    if memory_kb > LIMIT_KB:
        return f"{memory_kb} KiB of memory"
    lines = [line for line in error.splitlines() if not re.match(r"(next:|note:|headrace cat: (left|stripe|\d+ part)|verified|  )", line)]
    if code != 0 and len([line for line in lines if line.startswith("headrace ")]) != 1:
        return "not one line of error"
    if re.search(r"Sanitizer|runtime error|internal error|: bug:", error):
        return "stopped by a sanitizer or a bug"
    return None


class Driver:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.environment = dict(os.environ, HEADRACE_DB=str(work / "runs.db"), NO_COLOR="1",
                                HEADRACE_FUZZ_KEYS=FUZZ_KEYS,
                                ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=0:exitcode=99",
                                UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:exitcode=99")
        self.codes = {}
        self.bad = []
        self.rows = {}  # hash of the rows of each sound file
        self.other_rows, self.unnoticed = 0, []
        self.lock = threading.Lock()

    def file(self, path, what, pipeline, sound=None):
        """Through every way. `sound`: the file it was made of; None: it is sound itself."""
        verified, rows = None, None
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        for name, command in commands(self.options.headrace, path, pipeline, folder).items():
            limit = LIMIT_S * self.options.patience
            code, error, memory, output = run([str(part) for part in command], limit, self.environment)
            trouble = complaint(name, code, error, memory, limit)
            if name == "inspect --verify":
                verified = code == 0
            if name == "cat" and code == 0:
                rows = output
            if sound is None and code != 0:
                trouble = f"exit code {code} on a sound file"
            with self.lock:
                key = (name, code)
                self.codes[key] = self.codes.get(key, 0) + 1
                if trouble:
                    self.bad.append(path)
                    print(f"{path.name}: {what}\n  {name}: {trouble}\n  " + error.strip()[-3000:].replace("\n", "\n  "), flush=True)
            if trouble and self.options.keep:
                os.makedirs(self.options.keep, exist_ok=True)
                shutil.copy(path, self.options.keep)
        shutil.rmtree(folder, ignore_errors=True)
        with self.lock:
            if sound is None:
                self.rows[str(path)] = rows
            elif rows is not None and rows != self.rows[sound]:
                self.other_rows += 1
                if verified:
                    self.unnoticed.append(f"{path.name}: {what}")


def sound_files(options, work):
    """Tables of our own writer, with everything it can do, and small files of others where they are."""
    headrace = str(options.headrace)
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                 env=dict(os.environ, HEADRACE_FUZZ_KEYS=FUZZ_KEYS))
    make = lambda *arguments: subprocess.run([headrace, *map(str, arguments)], **quiet)
    base = ["--rows", 3000, "--features", "0.002", "--seed", 1]
    make("generate", "rm3", "-o", work / "plain", *base)
    make("generate", "rm1", "-o", work / "raw", *base, "--compression", "none")
    make("rewrite", work / "plain", "-o", work / "maps", "--layout", "map", "--stripe-rows", 1000)
    make("rewrite", work / "plain", "-o", work / "dictionary", "--column", "sparse.value.element=dictionary:shared")
    make("generate", "rm3", "-o", work / "secret", *base, "--keys", KEYS, "--encrypt", "a=sparse:fuzz:aes128-ctr")
    files = [work / name / "part-00000.dwrf" for name in ("plain", "raw", "maps", "dictionary", "secret")]
    if options.files and options.files.is_dir():
        files += sorted(f for f in options.files.iterdir() if f.suffix in (".dwrf", ".orc") and f.stat().st_size < 48 << 10
                        and not re.match(r"derived-|orc_no_format|rlev2|TestOrcFile|encrypted_|emptyPresto", f.name))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("damage", type=pathlib.Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=None, help="draw these files (default: any, printed)")
    parser.add_argument("--first", type=int, default=0, help="begin with the file of this number")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--patience", type=float, default=1, help="times the limit of 10 s: for slow builds, busy machines")
    parser.add_argument("--files", type=pathlib.Path, default=None, help="sound files of other writers")
    parser.add_argument("--keep", default=None, help="copy files there that something was wrong with")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work = pathlib.Path(tempfile.mkdtemp(prefix="damaged."))
    try:
        sound = sound_files(options, work)
        driver = Driver(options, work)
        pipelines = {str(file): pipeline_of(options.headrace, file, driver.environment) for file in sound}
        for file in sound:
            driver.file(file, f"sound {file}", pipelines[str(file)])
        folder = work / "damaged"
        folder.mkdir()
        listed = subprocess.run([str(options.damage), "files", str(seed), str(options.first), str(options.count), str(folder),
                                 *map(str, sound)], stdout=subprocess.PIPE, text=True, check=True).stdout
        said = dict(line.split(" ", 1) for line in listed.splitlines())
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda number: driver.file(folder / f"{number}.dwrf", said[number],
                                                     pipelines[said[number].split("\t")[0]], said[number].split("\t")[0]), sorted(said)))
        for (name, code), count in sorted(driver.codes.items(), key=str):
            print(f"{name:18} exit {code}: {count}")
        print(f"other rows without an error: {driver.other_rows} files, of which --verify takes {len(driver.unnoticed)} for sound")
        for line in driver.unnoticed:
            print("  " + line)
        print(f"{len(sound)} sound and {options.count} damaged files, seed {seed}: " +
              (f"{len(set(driver.bad))} with something wrong" if driver.bad else "all held"))
        return 1 if driver.bad else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
