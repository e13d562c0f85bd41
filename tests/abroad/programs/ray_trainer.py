"""Ray Data that runs ahead of a slow trainer; the fix is a step of a tenth."""
import logging
import os

os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray

import harness


def decode(rows):
    import time
    time.sleep(0.005)
    return rows


if __name__ == "__main__":
    args = harness.options()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.range(1 << 16, override_num_blocks=512).map_batches(decode, concurrency=1, batch_size=32)
    step = 0.004 if args.fix else 0.04
    harness.loop(harness.forever(lambda: rows.iter_batches(batch_size=32)), lambda batch: harness.burn(step), args.seconds)
