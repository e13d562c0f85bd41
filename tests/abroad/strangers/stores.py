"""Starts the stores."""
import atexit
import os
import subprocess
import sys


def start(script, *options):
    """Gives the port that the store says."""
    child = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), script), *map(str, options)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    mine = os.getpid()
    atexit.register(lambda: os.getpid() == mine and child.kill())
    return int(child.stdout.readline())
