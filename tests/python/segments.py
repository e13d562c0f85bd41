"""Reads account segments by the layout of probes/account/account.h, with nothing of the package under test."""
import glob
import os
import struct

NO_STAGE = 64
HEADER, STAGES, OPERATORS, QUEUES, STEPS, SLOTS = 4096, 4096, 20736, 53504, 81920, 344064
SLOT_BYTES, BLOCK_BYTES = 36864, 128


def _text(data):
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


class Segment:
    """One process's accounts: stages, operators (by (stage, name)), queues, steps. Times are ticks."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.magic, self.abi, self.state = struct.unpack_from("<QII", data, 0)
        self.pid = struct.unpack_from("<I", data, 24)[0]
        self.ticks_per_second = struct.unpack_from("<Q", data, 40)[0]
        counts = struct.unpack_from("<5I", data, 72)
        self.losses = struct.unpack_from("<6Q", data, 112)
        self.steps, self.step_rows, self.step_wait_ns, self.step_compute_ns = struct.unpack_from("<4Q", data, 160)
        self.program = _text(data[192:256])
        self.stages = []
        self.parallelism = {}
        for i in range(counts[0]):
            at = STAGES + 256 * i
            self.stages.append(_text(data[at:at + 64]))
            self.parallelism[self.stages[-1]] = struct.unpack_from("<I", data, at + 64)[0]
        self.operators, keys = {}, []
        for i in range(counts[1]):
            at = OPERATORS + 128 * i
            stage = struct.unpack_from("<I", data, at + 96)[0]
            key = (self.stages[stage] if stage < len(self.stages) else "", _text(data[at:at + 64]))
            keys.append(key)
            self.operators[key] = {"busy": 0, "wait_in": 0, "wait_out": 0, "enters": 0, "completions": 0, "rows": 0,
                                   "in_bytes": 0, "out_bytes": 0, "kind": _text(data[at + 64:at + 96])}
        self.slots = []
        for slot in range(counts[4]):
            at = SLOTS + SLOT_BYTES * slot
            used, tid, stage, current, depth = struct.unpack_from("<5I", data, at + 4)
            self.slots.append({"used": used, "tid": tid, "stage": stage, "current": current, "depth": depth})
            for i, key in enumerate(keys):
                busy, wait_in, wait_out, _, _, _, enters, done, rows, read, made = struct.unpack_from(
                    "<11Q", data, at + 512 + BLOCK_BYTES * (i + 1))
                sums = self.operators[key]
                for name, value in (("busy", busy), ("wait_in", wait_in), ("wait_out", wait_out), ("enters", enters),
                                    ("completions", done), ("rows", rows), ("in_bytes", read), ("out_bytes", made)):
                    sums[name] += value
        self.queues = {}
        for i in range(counts[2]):
            at = QUEUES + 256 * i
            capacity, occupancy = struct.unpack_from("<2I", data, at + 72)
            puts, gets = struct.unpack_from("<2Q", data, at + 136)
            self.queues[_text(data[at:at + 64])] = {"capacity": capacity, "occupancy": occupancy, "puts": puts,
                                                   "gets": gets}

    def seconds(self, ticks):
        return ticks / self.ticks_per_second


def folder():
    return os.environ["HEADRACE_ACCOUNT_DIR"]


def mine():
    return Segment(os.path.join(folder(), f"headrace.{os.getpid()}"))


def everybody():
    return [Segment(path) for path in sorted(glob.glob(os.path.join(folder(), "headrace.*")))]


def merged():
    """Sums over all processes, by (stage, operator)."""
    sums = {}
    for segment in everybody():
        for key, values in segment.operators.items():
            mine = sums.setdefault(key, dict.fromkeys(values, 0))
            for name, value in values.items():
                mine[name] = value if name == "kind" else mine[name] + value
    return sums
