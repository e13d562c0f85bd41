"""A multiprocessing.Pool whose results are padded in the main process; the fix pads in the workers."""
import multiprocessing

import harness


def make(index):
    harness.burn(0.002)
    return list(range(2000))


def make_padded(index):
    harness.burn(0.002)
    harness.burn(0.015)
    return list(range(2000))


if __name__ == "__main__":
    args = harness.options()

    def batches():
        with multiprocessing.Pool(2) as pool:
            for row in pool.imap(make_padded if args.fix else make, range(1 << 20)):
                if not args.fix:
                    harness.burn(0.015)
                yield row

    harness.loop(harness.forever(batches), lambda batch: harness.burn(0.001), args.seconds)
