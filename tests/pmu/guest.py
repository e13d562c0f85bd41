"""A guest: one of Debian's kernels, started in QEMU with a file system in memory that holds what
the test puts there, and init.c as process 1. No network, no KVM: the processor is emulated, so the
result does not depend on the machine it runs on."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def skip(reason):
    """Ends the test as skipped (CTest: SKIP_RETURN_CODE 77)."""
    print("skipped: " + reason)
    sys.exit(77)


def cache_folder():
    """Where fetch.sh left the packages."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("HEADRACE_PMU_CACHE") or os.path.join(base, "headrace", "pmu")


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip("%s is not installed: `make test-pmu` installs what the guests need" % program)


def package_root(architecture):
    root = os.path.join(cache_folder(), architecture, "root")
    if not os.path.exists(os.path.join(cache_folder(), architecture, "complete")):
        skip("no Debian kernel in %s: `make test-pmu` fetches it" % cache_folder())
    return root


class Checks:
    """One line a check; a closing line with the counts."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.begin = name, 0, 0, time.monotonic()

    def __call__(self, what, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
        print("%s  %s%s" % ("ok    " if good else "FAILED", what, ": " + detail if detail else ""))
        return good

    def end(self, *guests):
        if self.failed:
            for guest in guests:
                print("\nThe last lines of the guest's console (%s):" % guest.name)
                print("\n".join(guest.console.splitlines()[-60:]))
        print("%s: %d of %d checks passed, %.0f s" % (
            self.name, self.passed, self.passed + self.failed, time.monotonic() - self.begin))
        sys.exit(1 if self.failed else 0)


class Guest:
    """add() files, command() programs, run(); then output(NAME), status(NAME)."""

    def __init__(self, name, architecture, folder, extra=(), accelerator="tcg"):
        self.name, self.architecture, self.folder = name, architecture, folder
        self.accelerator = accelerator
        self.extra = list(extra)  # more of QEMU's arguments
        self.files, self.commands, self.console = {}, [], ""
        self.results, self.ended, self.seconds = {}, False, 0.0
        os.makedirs(folder, exist_ok=True)
        need("qemu-system-" + {"amd64": "x86_64", "arm64": "aarch64"}[architecture])
        self.compiler = {"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc"}[architecture]
        need(self.compiler)
        self.root = package_root(architecture)

    def add(self, path, source=None, text=None, mode=0o644):
        """A file at `path` of the guest: a copy of the file `source`, or `text`."""
        if text is None:
            with open(source, "rb") as file:
                data = file.read()
            mode = stat.S_IMODE(os.stat(source).st_mode)
        else:
            data = text.encode()
        self.files[path] = (mode, data)

    def add_program(self, path, source):
        """A program of this machine with the libraries it is linked with."""
        stripped = os.path.join(self.folder, os.path.basename(path) + ".stripped")
        subprocess.run(["strip", "--strip-debug", "-o", stripped, source], check=True)
        self.add(path, stripped)
        listing = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listing):
            if library not in self.files:
                self.add(library, os.path.realpath(library))

    def add_modules(self, names):
        """Modules of the guest's kernel, loaded in this order."""
        found = {}
        for folder, _, files in os.walk(os.path.join(self.root, "lib", "modules")):
            for file in files:
                found[file] = os.path.join(folder, file)
        for number, name in enumerate(names):
            if name + ".ko" not in found:
                skip("no kernel module %s in %s: `make test-pmu` fetches it" % (name, self.root))
            self.add("/guest/modules/%02d-%s.ko" % (number, name), found[name + ".ko"])

    def command(self, name, seconds, *words):
        assert all(" " not in word for word in words), words
        self.commands.append(" ".join([name, str(seconds)] + list(words)))

    def _archive(self, path):
        """The cpio archive (newc) that Linux unpacks into its first file system."""
        def entry(out, number, name, mode, data):
            name = name.lstrip("/")
            fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
            head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
            out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

        folders = {"dev", "proc", "sys", "tmp"}
        for name in self.files:
            parent = os.path.dirname(name.lstrip("/"))
            while parent:
                folders.add(parent)
                parent = os.path.dirname(parent)
        with open(path, "wb") as out:
            number = 1
            for folder in sorted(folders):
                entry(out, number, folder, stat.S_IFDIR | 0o755, b"")
                number += 1
            for name, (mode, data) in sorted(self.files.items()):
                entry(out, number, name, stat.S_IFREG | mode, data)
                number += 1
            entry(out, 0, "TRAILER!!!", 0, b"")

    def run(self, seconds):
        """Builds, boots, waits for the end; the console's text is also in FOLDER/NAME.log."""
        init = os.path.join(self.folder, self.name + ".init")
        subprocess.run([self.compiler, "-O2", "-Wall", "-static", os.path.join(HERE, "init.c"), "-o",
                        init], check=True)
        self.add("/init", init)
        self.add("/guest/commands", text="\n".join(self.commands) + "\n")
        archive = os.path.join(self.folder, self.name + ".cpio")
        self._archive(archive)
        kernels = os.path.join(self.root, "boot")
        kernel = [name for name in os.listdir(kernels) if name.startswith("vmlinuz-")][0]
        machine, console = {
            "amd64": (["qemu-system-x86_64", "-M", "q35"], "ttyS0"),
            "arm64": (["qemu-system-aarch64", "-M", "virt"], "ttyAMA0")}[self.architecture]
        arguments = machine + self.extra + [
            "-accel", self.accelerator, "-display", "none", "-monitor", "none", "-serial", "stdio",
            "-nic", "none", "-no-reboot", "-kernel", os.path.join(kernels, kernel),
            "-initrd", archive, "-append",
            "console=%s quiet loglevel=4 panic=-1 tsc=reliable rdinit=/init" % console]
        log = os.path.join(self.folder, self.name + ".log")
        begin = time.monotonic()
        with open(log, "wb") as out:
            try:
                subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT, timeout=seconds)
                in_time = True
            except subprocess.TimeoutExpired:
                in_time = False
        self.seconds = time.monotonic() - begin
        with open(log, "rb") as file:
            self.console = file.read().decode("utf-8", "replace").replace("\r", "")
        for name, text, status, ms in re.findall(
                r"^@begin (\S+)\n(.*?)^@end \1 (-?\d+) (\d+)$", self.console, re.S | re.M):
            self.results[name] = (int(status), text, int(ms))
        self.ended = in_time and "@guest end" in self.console

    def status(self, name):
        return self.results.get(name, (None, "", 0))[0]

    def output(self, name):
        return self.results.get(name, (None, "", 0))[1]
