"""Two halves of the cores, for programs that are compared at the same time: what else the machine does hits both alike. Cores of a
pair of hyperthreads may end up in both halves; swap them."""
import os
import sys


def halves():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("two programs at the same time want two cores")
    return [cores[:len(cores) // 2], cores[len(cores) // 2:]]


def pinned(command, cpus):
    return ["taskset", "-c", ",".join(map(str, cpus)), *command]
