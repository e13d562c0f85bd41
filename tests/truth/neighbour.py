"""A program beside the measured one that takes cores from it."""
import subprocess
import sys


class Neighbour:
    """Processes that compute on so many cores as long as this lasts."""
    COMPUTE = ("import os, sys, time\nshare, parent = float(sys.argv[1]), os.getppid()\nwhile os.getppid() == parent:\n    end = time.monotonic() + 0.02 * share\n"
               "    while time.monotonic() < end: pass\n    if share < 1: time.sleep(0.02 * (1 - share))\n")

    def __init__(self, cores):
        self.cores, self.processes = cores, []

    def __enter__(self):
        left = self.cores
        while left > 0.01:
            self.processes.append(subprocess.Popen([sys.executable, "-c", self.COMPUTE, str(min(1.0, left))]))
            left -= 1
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
