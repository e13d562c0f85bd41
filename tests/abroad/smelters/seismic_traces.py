"""Finds first arrivals in seismic traces; the survey's archive is compressed and read through a child process."""
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from pace import Pace, options

SAMPLES, BATCH, TRACES = 2048, 64, 2048


def record_survey(folder, fast):
    """A survey of some 16 MB, archived by xz, or by zstd with --fix."""
    rng = np.random.default_rng(11)
    raw = folder / "survey.f32"
    with raw.open("wb") as out:
        for _ in range(TRACES // 256):
            onset = rng.integers(200, 1800, 256)
            trace = rng.standard_normal((256, SAMPLES))
            trace[np.arange(SAMPLES) > onset[:, None]] *= 4
            trace = (trace * 64).round() / 64
            trace[:, 0] = onset / SAMPLES
            out.write(trace.astype(np.float32).tobytes())
    command = ["zstd", "-q", "-1", "--rm", str(raw)] if fast else ["xz", "-0", str(raw)]
    subprocess.run(command, check=True)
    return folder / ("survey.f32.zst" if fast else "survey.f32.xz")


def open_archive(path):
    tool = "zstd" if path.suffix == ".zst" else "xz"
    return subprocess.Popen([tool, "-dcq", str(path)], stdout=subprocess.PIPE)


def read_batches(path):
    size = BATCH * SAMPLES * 4
    while True:
        child = open_archive(path)
        try:
            while True:
                block = child.stdout.read(size)
                if len(block) < size:
                    break
                traces = np.frombuffer(block, np.float32).reshape(BATCH, SAMPLES)
                yield traces[:, 1:], traces[:, 0]
        finally:
            child.stdout.close()
            child.terminate()
            child.wait()


class Picker:
    """The energy in 89 windows, and a linear layer."""

    def __init__(self):
        self.weight = np.zeros(89, np.float32)

    def step(self, traces, onset):
        parts = traces.reshape(BATCH, 89, 23)
        energy = np.log1p(np.einsum("bwn,bwn->bw", parts, parts) / 23)
        error = energy @ self.weight - onset
        self.weight -= 0.002 * energy.T @ error / BATCH
        return float((error ** 2).mean())


def main():
    args = options()
    folder = Path(tempfile.mkdtemp(prefix="seismic"))
    try:
        archive = record_survey(folder, args.fix)
        model, pace = Picker(), Pace(args.seconds)
        batches = read_batches(archive)
        for traces, onset in batches:
            loss = model.step(traces, onset)
            if pace.done():
                break
        batches.close()
        print(f"loss {loss:.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
