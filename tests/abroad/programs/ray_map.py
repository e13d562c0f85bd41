"""Ray Data whose map_batches computes in one worker process; the fix is a map that computes a tenth."""
import logging
import os

os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray

import harness


class Decode:
    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, rows):
        import time
        end = time.thread_time() + self.seconds * len(rows["id"])
        x = 1.0
        while time.thread_time() < end:
            x = x * 1.0000001 + 1e-9
        return rows


if __name__ == "__main__":
    args = harness.options()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    seconds = 0.0003 if args.fix else 0.003
    rows = ray.data.range(1 << 16, override_num_blocks=512)
    rows = rows.map_batches(Decode, fn_constructor_args=(seconds,), concurrency=1, batch_size=32)
    harness.loop(harness.forever(lambda: rows.iter_batches(batch_size=32)), lambda batch: harness.burn(0.003), args.seconds)
