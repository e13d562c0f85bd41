#!/usr/bin/env python3
"""pingpong.py SECONDS: two processes on one CPU hand a byte to and fro, as often as they can. Prints each second how often.

A program of nothing but context switches, for which recording is dearest (docs/measurements.md, "Cost of recording, by level").
"""
import os
import sys
import time


def main():
    seconds = float(sys.argv[1])
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    (there_out, there_in), (back_out, back_in) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there_in)
        while os.read(there_out, 1):
            os.write(back_in, b".")
        os._exit(0)
    os.close(there_out)
    end, told, switches = time.monotonic() + seconds, time.monotonic() + 1, 0
    while (now := time.monotonic()) < end:
        os.write(there_in, b".")
        os.read(back_out, 1)
        switches += 2
        if now >= told:
            print(switches, flush=True)
            told, switches = told + 1, 0
    os.close(there_in)
    os.wait()


if __name__ == "__main__":
    main()
