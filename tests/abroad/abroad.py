"""Programs of other people's kinds: what headrace says of each, against what an intervention shows.

    python3 tests/abroad/abroad.py HEADRACE [--python PYTHON] [--only NAME,...] [--pairs N] [--beside CORES] [--markdown FILE]
                                   [--programs FOLDER]

Each program of tests/abroad/programs is run as it is and with the change that lifts its limit (--fix), in turns; then once
under `headrace profile` with the import hook and once without. The words that name the limit were written down before
headrace was asked. A verdict is right when it has such words; wrong and sure when it has not and its probability is 0.9 or
more. A promise holds when its interval holds the gain of the change that was advised, where that is the program's own.
Ends with 77 where nothing can be run: PYTHON must be able to import torch.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import re
import runpy
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from neighbour import Neighbour  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"  # Of another folder: --programs.

# Words of the line "limit" (and of its operator) with the hook, words of it from outside, words of the advice that are the
# program's own change; None: not asked.
CASES = {
    "workers_cpu": (r"workers.*getitem|workers and CPU cores|CPU cores", r"worker|CPU cores", r"num_workers 1 -> (2|3|4)\b"),
    "no_worker": (r"own thread", r"one thread|own thread", r"num_workers 0 -> (2|3)\b"),
    "remote_items": (r"workers.*getitem", r"network", r"num_workers 2 -> 8"),
    "slow_trainer": (r"the trainer( \(|: its step)", r"the trainer", None),
    "collate": (r"workers.*collate|workers and CPU cores|CPU cores", r"worker|CPU cores", None),
    "large_arrays": (r"own thread.*(receive|unpickle)|CPU cores.*receive", None, r"tensors instead of arrays"),
    "short_epochs": (r"start of the workers", None, r"persistent_workers=True"),
    "one_lock": (r"lock", r"a lock", None),
    "slow_item": (r"order", None, r"in_order=False"),
    "one_shard": (r"workers.*next|workers and CPU cores|CPU cores", r"worker|CPU cores", None),
    "pool_main": (r"the (consumer|trainer)|CPU cores", r"the (consumer|trainer)", None),
    "threads_gil": (r"GIL", r"GIL", r"processes instead of threads"),
    "ranks": (r"workers.*getitem", r"timer|worker", None),
    "Loader.java": (None, r"timer.*reader", None),
    "lightning_fit": (r"workers.*getitem|CPU cores", r"worker|CPU cores", r"num_workers 1 -> (2|3|4)\b"),
    "accelerate_none": (r"own thread", r"one thread", r"num_workers 0 -> [2-9]"),
    "hf_map": (r"workers.*getitem|CPU cores", r"worker|CPU cores", None),
    "hf_stream": (r"workers.*next|CPU cores", r"worker|CPU cores", None),
    "wds_tar": (r"workers.*next|CPU cores", r"worker|CPU cores", r"num_workers 1 -> (2|3|4)\b"),
    "tf_map": (r"own thread|tf\.data (prefetch|map)", r"one thread|tf.data", r"num_parallel_calls(=| 1 -> )(2|3)"),
    "tf_sleep": (r"tf\.data map", None, r"num_parallel_calls 2 -> ([6-9]|1\d)"),
    "keras_fit": (r"the trainer", r"the trainer|the consumer", None),
    "keras_wait": (r"tf\.data map|CPU cores", None, r"num_parallel_calls 1 -> (2|3)"),
    "ray_map": (r"MapBatches\(Decode\)|CPU cores", r"ray::|MapWorker|CPU", None),
    "ray_trainer": (r"the trainer", None, None),
    "pool_store": (r"Pool", r"timer", r"Pool processes 2 -> [3-9]"),
    "executor_cpu": (r"ProcessPoolExecutor|CPU cores", r"process(es)? python", r"max_workers 1 -> [2-9]"),
    "executor_store": (r"ThreadPoolExecutor", r"network", None),
    "own_queue": (None, r"process python", None),
    "asyncio_store": (None, r"timer|one thread", None),
    "loader.go": (None, r"loader's other threads", None),
    # Written by somebody who knew none of the rules, with these words; the rules were mended by what they showed.
    "image_train": (r"workers.*getitem|CPU cores", r"worker|CPU cores", r"num_workers 1 -> (2|3|4)\b"),
    "text_shards": (r"order|uneven|slowest|shard", r"order|uneven|slowest|shard", None),
    "seq_pad": (r"own thread", r"one thread", r"num_workers 0 -> (2|3)\b"),
    "weighted_train": (r"sampl|index", r"sampl|index", None),
    "keep_train": (r"trainer", r"the trainer", None),
    "mlp_train": (r"the trainer", r"the trainer", None),
    "table_threads": (None, r"GIL", None),
    "jpeg_tf": (r"tf\.data|own thread", r"one thread|prefetch", r"num_parallel_calls 1 -> 2\b"),
    "column_reader.cc": (None, r"a lock", None),
    "flock_items": (r"lock in getitem", r"a lock", None),
    "dict_small": (r"own thread.*(receive|unpickle)", r"one thread|own thread|unpickl", None),
    "queue_sqlite": (r"other thread|reader|producer|one thread|queue", r"other thread|reader|producer|one thread|queue", None),
    "bursty_stream": (r"pauses of workers", r"prefetch|burst|ahead|buffer|worker.*timer|timer.*worker",
                      r"prefetch_factor 2 -> (1[5-9]|[2-9]\d)"),
    "feature_server": (r"waiting for the network", r"network", None),
    "bz_pipe": (None, r"bzip2", None),
    "tf_shuffle_fill": (r"own thread.*first_batch", r"epoch|tf\.data|first", r"one iterator for all epochs"),
    "tf_gzip_records": (r"TFRecord", r"tf\.data|one thread", None),
    "thin_link": (r"network|bandwidth|link|server", r"network|bandwidth|server", None),
    "validate_often": (r"the trainer \(|its step takes", r"the trainer", None),
    "keras_sequence": (r"getitem|PyDataset|other thread|another thread|one thread|ThreadPool|producer",
                       r"other thread|another thread|one thread|producer|Thread-", None),
    "ray_torch": (r"collate|iter_torch_batches|other thread|another thread|one thread", r"other thread|another thread|one thread|Thread-", None),
    # On an NVIDIA device.
    "cuda_async": (r"workers.*getitem", r"worker", r"num_workers 1 -> [2-5]"),
    "cuda_bound": (r"the GPU", r"the trainer|GPU", None),
    "cuda_item": (r"the trainer", r"the trainer", None),
    "cuda_none": (r"own thread, operator getitem", r"one thread", r"num_workers 0 -> [2-5]"),
    "cuda_jpeg": (r"workers.*getitem", r"worker", None),
    "cuda_pageable": (r"the trainer", r"the trainer", None),
    "cuda_pin": (r"pin_memory", r"pin", None),
    "cuda_bert": (r"own thread, operator getitem", r"one thread", r"num_workers 0 -> [3-6]"),
    "cuda_lightning": (r"workers.*getitem", r"worker", r"num_workers 1 -> [3-5]"),
    "cuda_small": (r"the trainer", r"the trainer", None),
}

# Modules beside torch that a program imports.
NEEDS = {"lightning_fit": "lightning", "accelerate_none": "accelerate", "hf_map": "datasets", "hf_stream": "datasets",
         "wds_tar": "webdataset", "tf_map": "tensorflow", "keras_fit": "tensorflow", "tf_sleep": "tensorflow", "keras_wait": "tensorflow",
         "ray_map": "ray.data", "ray_trainer": "ray.data", "jpeg_tf": "tensorflow",
         "keras_sequence": "tensorflow", "ray_torch": "ray.data", "tf_shuffle_fill": "tensorflow", "tf_gzip_records": "tensorflow",
         "cuda_jpeg": "torchvision", "cuda_bert": "transformers", "cuda_lightning": "lightning"}


def rate_of(output):
    rates = [float(rate) for rate in re.findall(r"^rate ([\d.]+) batches/s", output, re.M)]
    return statistics.mean(rates) if rates else None


class Abroad:
    def __init__(self, arguments, folder, programs, needs):
        self.arguments, self.folder, self.programs, self.needs = arguments, folder, programs, needs
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("HEADRACE_")}

    def command(self, name, seconds, fixed):
        if name.endswith(".java"):
            command = ["java", "-cp", str(self.folder), name[:-5]]
        elif name.endswith((".go", ".cc", ".rs")):
            command = [str(self.folder / name[:-3])]
        elif name == "ranks":
            command = [self.arguments.python, "-m", "torch.distributed.run", "--nproc-per-node=2", f"{self.programs}/ranks.py"]
        else:
            command = [self.arguments.python, str(self.programs / (name + ".py"))]
        return command + ["--seconds", str(seconds)] + (["--fix"] if fixed else [])

    def why_not(self, name):
        """Builds it where that is needed."""
        if name.endswith(".java"):
            return self.built("javac", ["-d", str(self.folder), str(self.programs / name)])
        if name.endswith(".go"):
            return self.built("go", ["build", "-o", str(self.folder / name[:-3]), str(self.programs / name)])
        if name.endswith(".rs"):
            return self.built("rustc", ["-O", "-g", "-o", str(self.folder / name[:-3]), str(self.programs / name)])
        if name.endswith(".cc"):
            return self.built("c++", ["-std=c++20", "-O2", "-pthread", "-o", str(self.folder / name[:-3]), str(self.programs / name)])
        if name.startswith("cuda_") and not self.has_device():
            return f"{self.arguments.python} sees no CUDA device"
        module = self.needs.get(name)
        if module and subprocess.run([self.arguments.python, "-c", "import " + module], capture_output=True).returncode:
            return f"{self.arguments.python} cannot import {module}"
        return ""

    def has_device(self):
        code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
        return subprocess.run([self.arguments.python, "-c", code], capture_output=True).returncode == 0

    def has_hook(self):
        with tempfile.TemporaryDirectory(prefix="headrace-abroad-") as folder:
            done = subprocess.run([self.arguments.headrace, "profile", "--db", folder + "/hook.db", "--", self.arguments.python, "-c", ""],
                                  capture_output=True, text=True, env=self.environment)
        return done.returncode == 0 and "no instrumentation" not in done.stderr

    @staticmethod
    def built(compiler, arguments):
        if not shutil.which(compiler):
            return "no " + compiler
        subprocess.run([compiler, *arguments], check=True)
        return ""

    def run(self, command):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
                              process_group=0) as process:
            try:
                out, err = process.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise RuntimeError(f"{' '.join(command)}: not over after 300 s") from None
        done = subprocess.CompletedProcess(command, process.returncode, out, err)
        if rate_of(done.stdout) is None:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
        return done

    def gain(self, name):
        """Of the program's own change: median over pairs."""
        gains = []
        for _ in range(self.arguments.pairs):
            base, fixed = (rate_of(self.run(self.command(name, self.arguments.seconds, fix)).stdout) for fix in (False, True))
            gains.append(fixed / base - 1)
        return statistics.median(gains) if gains else float("nan")

    def page(self, name, hook):
        database = str(self.folder / f"{name}-{hook}.db")
        options = [] if hook else ["--no-hook"]
        self.run([self.arguments.headrace, "profile", "-q", *options, "--db", database, "--",
                  *self.command(name, self.arguments.seconds, False)])
        done = subprocess.run([self.arguments.headrace, "report", "latest", "--db", database, "--format", "json"],
                              capture_output=True, text=True, env=self.environment)
        report = json.loads(done.stdout)
        line = {key: "" for key in ("limit", "fix")}
        line.update((each["label"], each["text"]) for each in report["page"]["lines"])
        limit = report["verdict"].get("limit") or {}
        probability = limit.get("probability") or 0
        if "together" in line["limit"] or "undecided" in line["limit"]:
            probability = 0
        return line["limit"], line["fix"], probability

    def judge(self, name, hook, words, advice, gain):
        limit, fix, probability = self.page(name, hook)
        # A program may be called after what limits it, so files' names are no words of ours.
        said = re.sub(r"[\w./-]+\.(py|cc|go|rs|java)(:\d+)?", "", limit)
        right = bool(re.search(words, said, re.I))
        interval = re.search(r"([+-]\d+) % \[(-?\d+), (-?\d+)\] predicted", fix)
        promise = ""
        if advice and interval and re.search(advice, fix) and not math.isnan(gain):
            low, high = int(interval[2]) / 100, int(interval[3]) / 100
            promise = "holds"
            if not low <= gain <= high:
                promise = "SLOWER" if gain < -0.03 else "NOTHING" if low > 0 and gain < 0.01 else "MISSES"
        return {"program": name, "view": "hook" if hook else "outside", "limit": limit, "probability": probability,
                "right": right, "sure and wrong": not right and probability >= 0.9, "fix": fix, "gain": gain,
                "advice followed": bool(advice and re.search(advice, fix)), "promise": promise}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("--python", default=os.environ.get("HEADRACE_TEST_PYTHON", sys.executable))
    parser.add_argument("--only", default="")
    parser.add_argument("--pairs", type=int, default=1, help="0: name the limits only, no promise is tried")
    parser.add_argument("--view", choices=("hook", "outside"), help="only this one")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--markdown")
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS,
                        help="a folder of other programs; CASES and NEEDS of its cases.py are those of this file")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the recordings in this folder")
    parser.add_argument("--beside", type=float, default=0.0, help="cores that other processes keep busy meanwhile")
    parser.add_argument("--tsv", help="lines for `accuracy render`")
    arguments = parser.parse_args()
    arguments.headrace = os.path.abspath(arguments.headrace)
    arguments.programs = arguments.programs.resolve()
    return arguments


def cases_of(programs):
    """The words that name each program's limit, and the modules that programs import."""
    if programs == PROGRAMS:
        return CASES, NEEDS
    named = runpy.run_path(str(programs / "cases.py"))
    return named["CASES"], named.get("NEEDS", {})


def table(rows):
    text = "| program | view | limit | right | advice | measured | promise |\n|---|---|---|---|---|---|---|\n"
    for row in rows:
        text += "| {} | {} | {} | {} | {} | {:+.0f} % | {} |\n".format(
            row["program"], row["view"], row["limit"], "yes" if row["right"] else "**no**",
            row["fix"], 100 * row["gain"], row["promise"])
    return text


def main():
    arguments = options()
    if subprocess.run([arguments.python, "-c", "import torch"], capture_output=True).returncode:
        print(f"abroad: {arguments.python} cannot import torch: name one by HEADRACE_TEST_PYTHON")
        return 77
    rows, failures = [], []
    cases, needs = cases_of(arguments.programs)
    with contextlib.ExitStack() as stack:
        stack.enter_context(Neighbour(arguments.beside))
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
        folder = arguments.keep or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-abroad-")))
        abroad = Abroad(arguments, folder.resolve(), arguments.programs, needs)
        if arguments.view != "outside" and not abroad.has_hook():
            print(f"abroad: {arguments.headrace} finds no import hook beside it: take a build in its source folder, or --view outside")
            return 2
        for name, (hooked, outside, advice) in cases.items():
            if arguments.only and name not in arguments.only.split(","):
                continue
            if why := abroad.why_not(name):
                print(f"{name}: skipped: {why}")
                continue
            rows_before = len(rows)
            try:
                gain = abroad.gain(name)
                for hook, words in ((True, hooked), (False, outside)):
                    if words is not None and arguments.view != ("outside" if hook else "hook"):
                        rows.append(abroad.judge(name, hook, words, advice, gain))
            except RuntimeError as error:  # the program hangs, or ends without a rate
                print(f"{name}: failed: {error}", flush=True)
                failures.append(name)
            for row in rows[rows_before:]:
                print(f"{name} ({row['view']}): {'right' if row['right'] else 'WRONG'}: {row['limit']}; {row['fix']}; "
                      + ("not tried" if math.isnan(gain) else f"the change brought {100 * gain:+.0f} % {row['promise']}".rstrip()),
                      flush=True)
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(table(rows))
    if arguments.tsv:
        lines = ["\t".join(["applied", "programs of others, " + row["view"], row["program"], str(int(row["right"])), row["limit"],
                            row["fix"], f"{100 * row['gain']:+.0f} %", row["promise"].replace("MISSES", "misses")]) for row in rows]
        pathlib.Path(arguments.tsv).write_text("\n".join(lines) + "\n")
    failed = bool(failures)
    for view in ("hook", "outside"):
        seen = [row for row in rows if row["view"] == view]
        if not seen:
            continue
        right, sure = sum(row["right"] for row in seen), sum(row["sure and wrong"] for row in seen)
        promises = [row["promise"] for row in seen if row["promise"]]
        print(f"{view}: {right} of {len(seen)} named right, {sure} wrong and sure, {promises.count('holds')} of "
              f"{len(promises)} promises hold")
        failed = failed or right < 0.85 * len(seen) or sure > 0.05 * len(seen)
        failed = failed or promises.count("holds") < 0.8 * len(promises)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
