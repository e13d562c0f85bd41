"""Builds the wheel of the package headrace (PEP 517), with the standard library alone: pip needs neither setuptools nor wheel,
nor a network. What `pyproject.toml` says in its [project] table is what the wheel says of itself. The wheel with the program in it
is made by packaging/wheel/make_wheel.py, which uses the functions below."""
import base64
import hashlib
import io
import pathlib
import re
import sysconfig
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "headrace"


def _project():
    """The texts of pyproject.toml's [project] table, by key."""
    table = (HERE / "pyproject.toml").read_text(encoding="utf-8").split("[project]")[1].split("\n[")[0]
    return dict(re.findall(r'^([a-z-]+) = "([^"\n]*)"$', table, re.MULTILINE))


def _files():
    """The package's files, and the library where one lies beside them."""
    return sorted([*(HERE / PACKAGE).rglob("*.py"), *(HERE / PACKAGE).glob("libheadrace_account.so*")])


def package_contents():
    """The bytes of the package's files, by their name in the wheel."""
    return {file.relative_to(HERE).as_posix(): file.read_bytes() for file in _files()}


def _metadata(description=""):
    """What the wheel says of itself; `description` is Markdown, the page of the project in an index."""
    project = _project()
    return (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            f"Summary: {project['description']}\nLicense: {project['license-expression']}\n"
            f"Requires-Python: {project['requires-python']}\n"
            + (f"Description-Content-Type: text/markdown\n\n{description}" if description else ""))


def _tag():
    """A package with the library in it fits one platform, one without it every platform."""
    library = any(".so" in file.name for file in _files())
    return "py3-none-" + (re.sub("[-.]", "_", sysconfig.get_platform()) if library else "any")


def distribution():
    """How the folders in the wheel begin that belong to the distribution: NAME-VERSION."""
    return f"{PACKAGE}-{_project()['version']}"


def write_wheel(folder, contents, tag, description=""):
    """Writes the wheel of these contents (bytes by name) into the folder; returns its file name. What goes to the scripts of an
    environment may be executed."""
    info = f"{distribution()}.dist-info"
    pure = "true" if tag.endswith("-any") else "false"
    contents = {**contents, f"{info}/METADATA": _metadata(description).encode(),
                f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: headrace\nRoot-Is-Purelib: {pure}\n"
                                  f"Tag: {tag}\n").encode()}
    record = ""
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    contents[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{distribution()}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name)  # of 1980: the same files make the same wheel
            executable = name.startswith(f"{distribution()}.data/scripts/")
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, package_contents(), _tag())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {f"{PACKAGE}.pth": f"{HERE}\n".encode()}, _tag())


def build_sdist(sdist_directory, config_settings=None):
    root = f"{PACKAGE}-{_project()['version']}"
    contents = {file.relative_to(HERE): file.read_bytes() for file in
                [*_files(), HERE / "pyproject.toml", pathlib.Path(__file__).resolve()]}
    contents["PKG-INFO"] = _metadata().encode()
    with tarfile.open(pathlib.Path(sdist_directory) / f"{root}.tar.gz", "w:gz") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{root}.tar.gz"
