#!/usr/bin/env python3
"""Makes the wheel that `pip install` puts a whole headrace from: the program, its manual and completions, the Python package with its
import hook, and the instrumentation's library. The standard library and binutils alone.

usage: make_wheel.py PORTABLE DIST    PORTABLE: the folder with headrace and libheadrace_account.so.1 (target headrace_portable)
       make_wheel.py PORTABLE DIST ROOT PROGRAM  for 64-bit ARM, by cross compilation. ROOT: what arm64_root.sh has unpacked. PROGRAM:
                                        headrace of the same source for this machine, which prints manual and completions
       make_wheel.py --licences FOLDER [ROOT]  writes there the licences of what is linked into the program, which go with the archive too

The tag says the oldest C library it runs with. It is read from the symbols that the two files need, so it is true however they were
linked. A file that needs another library than those of the C library is refused.
"""
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "probes/python"))
import wheel_backend  # noqa: E402  (beside the package)

C_LIBRARY = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv)\.so\.\d|ld-linux")
# Debian packages whose code is in the program; their licences go with it.
PARTS = ["coinor-libcbc-dev", "coinor-libcgl-dev", "coinor-libclp-dev", "coinor-libcoinutils-dev", "coinor-libosi-dev",
         "libblas-dev", "libboost1.74-dev", "libbpf-dev", "libbz2-dev", "libcli11-dev", "libcurl4-openssl-dev", "libdeflate-dev", "libelf-dev", "libfmt-dev",
         "libgcc-12-dev", "libgfortran-12-dev", "liblapack-dev", "liblz4-dev", "libncurses-dev", "libprotobuf-dev", "libsnappy-dev",
         "libsqlite3-dev", "libssl-dev", "libstdc++-12-dev", "libtomlplusplus-dev", "liburing-dev", "libxxhash-dev", "libzstd-dev",
         "nlohmann-json3-dev", "zlib1g-dev"]
# Those that come with the compiler. A cross compiler brings its own.
OF_COMPILER = ["libgcc-12-dev", "libstdc++-12-dev"]


def oldest_glibc(file):
    """(2, 31) for a file whose newest symbol is of glibc 2.31. Ends the program where it needs a library besides the C library's."""
    dynamic = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True, check=True).stdout
    foreign = [name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) if not C_LIBRARY.match(name)]
    if foreign:
        sys.exit(f"make_wheel: {file} needs {', '.join(foreign)}, which not every Linux has; build the target headrace_portable")
    versions = subprocess.run(["readelf", "-VW", file], capture_output=True, text=True, check=True).stdout
    return max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", versions))[:2]


def machine_of(file):
    """The processor that an ELF file is for, as the tags of wheels call it."""
    known = {62: "x86_64", 183: "aarch64"}
    number = int.from_bytes(file.read_bytes()[18:20], "little")  # e_machine
    if number not in known:
        sys.exit(f"make_wheel: {file} is for no processor that a wheel is made for: {', '.join(known.values())}")
    return known[number]


def stripped(file, folder):
    """The bytes of the file without lines and types, which are for debuggers. Names of functions stay, for sampled stacks."""
    copy = pathlib.Path(folder) / file.name
    machine = machine_of(file)
    strip = "strip" if machine == platform.machine() else f"{machine}-linux-gnu-strip"
    subprocess.run([strip, "--strip-debug", "-o", copy, file], check=True)
    return copy.read_bytes()


def printed(program, folder):
    """What the program prints of itself for an installation: manual and completions, by their path below a prefix."""
    environment = {name: value for name, value in os.environ.items() if name != "HEADRACE_DB"}
    environment["HEADRACE_CONFIG"] = ""
    root = pathlib.Path(folder) / "root"
    for words in (["man", "-o", root / "share/man/man1"], ["completion", "--into", root]):
        subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


def sources(packages):
    """Lines with the source packages of installed Debian packages and their versions."""
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\\n", *packages], capture_output=True, text=True)
    if asked.returncode:
        sys.exit(f"make_wheel: {asked.stderr.splitlines()[0]}; the program's NOTICE names the versions of its parts")
    return asked.stdout.splitlines()


def sources_of_arm64(root):
    """The same of the packages in a folder that arm64_root.sh has made."""
    unpacked = dict(line.split(" ", 1) for line in (root / "packages").read_text(encoding="utf-8").splitlines())
    return [unpacked[part] for part in PARTS if part not in OF_COMPILER] + sources(f"{part}-arm64-cross" for part in OF_COMPILER)


def notice(parts):
    """What is linked into the program, by lines of Debian's source packages with their versions, and how to link it again."""
    lines = "\n".join(f"  {line}" for line in sorted(set(parts)))
    return f"""The program headrace and its library for instrumentation are under the Apache License 2.0 (LICENSE).

These Debian source packages are linked into the program, whole or in part. Their licences are beside this file:
PACKAGE.txt, and in common-licenses the texts that those name.

{lines}

libcurl is built from Debian's source of curl with HTTP and HTTPS alone. Start files of the C library (glibc) are linked in too;
the C library itself is not. Debian has the sources: https://snapshot.debian.org

To link the program with another version of a part, build it from the source of headrace: docs/install.md, "Linking with other libraries".
"""


def licences(root=None):
    """The files that go with the linked program, by their names. Debian's packages have the same licences for all processors."""
    parts = sources_of_arm64(root) if root else sources(PARTS)
    found = {"LICENSE": (SOURCE / "LICENSE").read_bytes(), "NOTICE": notice(parts).encode()}
    for part in PARTS:
        copyright = pathlib.Path("/usr/share/doc") / part / "copyright"
        if not copyright.exists():
            sys.exit(f"make_wheel: {copyright} is missing; the licence of what is linked must go with it (apt-get install {part})")
        found[f"{part}.txt"] = copyright.read_bytes()
        for name in re.findall(rb"/usr/share/common-licenses/([\w.+-]*\w)", found[f"{part}.txt"]):
            text = pathlib.Path("/usr/share/common-licenses") / name.decode()
            if not text.exists():
                sys.exit(f"make_wheel: {text} is missing, which {copyright} names (apt-get install base-files)")
            found[f"common-licenses/{text.name}"] = text.read_bytes()
    return found


def main():
    licensing = sys.argv[1:2] == ["--licences"]
    if len(sys.argv) not in ((3, 4) if licensing else (3, 5)):
        sys.exit(__doc__.split("\n\n")[1])
    if licensing:
        for name, content in licences(*map(pathlib.Path, sys.argv[3:])).items():
            file = pathlib.Path(sys.argv[2]) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return
    portable, dist, *elsewhere = map(pathlib.Path, sys.argv[1:])
    program, library = portable / "headrace", portable / "libheadrace_account.so.1"
    for file in (program, library):
        if not file.exists():
            sys.exit(f"make_wheel: {file} is missing; build the targets headrace_portable and headrace_account_portable")
    root, printer = elsewhere or (None, program)
    glibc = "_".join(map(str, max(oldest_glibc(program), oldest_glibc(library))))
    name = wheel_backend.distribution()
    contents = wheel_backend.package_contents()
    with tempfile.TemporaryDirectory() as folder:
        contents[f"headrace/{library.name}"] = stripped(library.resolve(), folder)
        contents[f"{name}.data/scripts/headrace"] = stripped(program, folder)
        contents.update({f"{name}.data/data/{path}": data for path, data in printed(printer, folder).items()})
    contents.update({f"{name}.dist-info/licenses/{file}": data for file, data in licences(root).items()})
    dist.mkdir(parents=True, exist_ok=True)
    for old in dist.glob("headrace-*.whl"):
        old.unlink()
    tag = f"py3-none-manylinux_{glibc}_{machine_of(program)}"
    print(dist / wheel_backend.write_wheel(dist, contents, tag, (SOURCE / "packaging/wheel/description.md").read_text(encoding="utf-8")))


main()
