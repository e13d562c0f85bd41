"""A memory cgroup (v1) for a test of its own."""
import os

GROUPS = "/sys/fs/cgroup/memory"


def own_group(name):
    """A new group below this process's own, and None; or None, and the reason why there is none."""
    base = GROUPS
    try:
        for line in open("/proc/self/cgroup"):
            _, controllers, path = line.strip().split(":", 2)
            if "memory" in controllers.split(",") and os.path.isdir(GROUPS + path):
                base = GROUPS + path
        folder = os.path.join(base, "%s-%d" % (name, os.getpid()))
        os.mkdir(folder)
        open(os.path.join(folder, "memory.limit_in_bytes")).close()
        return folder, None
    except OSError as error:
        return None, "no memory cgroup (v1) can be made here: %s" % error
