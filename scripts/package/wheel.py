#!/usr/bin/env python3
"""Makes the Python package drey: a wheel with the shared library and the command drey inside, which
needs no compiler.

    wheel.py DIR [--build BUILD_DIR] [--arch aarch64]

Writes DIR/drey-VERSION-py3-none-manylinux_2_N_ARCHITECTURE.whl. The library has what it links to
inside, but libc, whose version N is read off it. The command is the file that static.sh makes; pip
puts it among the environment's programs. The declarations that the package uses are those of
include/drey, as the C preprocessor gives them; cffi (in the environment that runs this) makes a
Python file of them.
--arch: BUILD_DIR was configured for another architecture than this machine's (static.sh --arch).
"""
import argparse
import base64
import contextlib
import glob
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADERS = ["drey/reply.h", "drey/research.h", "drey/tune.h"]  # which include the others


def version():
    text = open(os.path.join(ROOT, "CMakeLists.txt")).read()
    return re.search(r"project\(drey VERSION ([0-9.]+)", text).group(1)


SCRIPTS = "drey-%s.data/scripts/" % version()
METADATA = """Metadata-Version: 2.1
Name: drey
Version: %s
Summary: Runs language models larger than memory, writing the same text
Author: the drey developers
License: MIT
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: cffi>=1.15
Description-Content-Type: text/markdown

"""


def declarations(folder):
    """The headers without directives, comments and the system's own, for cffi."""
    stubs = os.path.join(folder, "include")
    os.makedirs(stubs)
    for name in ("stdbool.h", "stddef.h", "stdint.h", "stdio.h"):
        open(os.path.join(stubs, name), "w").close()
    lines = "".join('#include "%s"\n' % name for name in HEADERS)
    text = subprocess.run(["cc", "-E", "-P", "-nostdinc", "-I", stubs, "-I", os.path.join(ROOT, "include"), "-"],
                          input=lines, capture_output=True, text=True, check=True).stdout
    return re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text)


def write_declarations(path, folder):
    import cffi
    ffi = cffi.FFI()
    ffi.cdef(declarations(folder))
    ffi.set_source("drey._declarations", None)
    with contextlib.redirect_stdout(io.StringIO()):  # it says what it does
        ffi.emit_python_code(path)
    with open(path, "a") as made:
        made.write("VERSION = '%s'\n" % version())


def newest_libc(library, tools):
    """The minor number of the newest glibc 2 that the library asks for."""
    symbols = subprocess.run([tools + "objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    return max(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", symbols))


def build_both(build, library, command, tools):
    """The library, and the command as a static file. tools: the prefix of the compiler's
    programs."""
    script = os.path.join(ROOT, "scripts/build.sh")
    # A new folder does without what only tests need.
    options = [] if os.path.exists(os.path.join(build, "CMakeCache.txt")) else ["-DBUILD_TESTING=OFF"]
    subprocess.run([script, build, "--target=drey-bundled", "--target=drey-static", *options], check=True)
    for made, to in (("libdrey-bundled.so", library), ("drey-static", command)):
        subprocess.run([tools + "strip", "-o", to, os.path.join(build, "cli", made)], check=True)


def readme():
    return open(os.path.join(ROOT, "python/README.md")).read()


def write_wheel(dir, files, tag):
    """files: {name in the wheel: bytes}"""
    name = "drey-%s" % version()
    info = name + ".dist-info/"
    files = dict(files)
    files[info + "METADATA"] = (METADATA % version() + readme()).encode()
    files[info + "WHEEL"] = ("Wheel-Version: 1.0\nGenerator: drey\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode()
    files[info + "licenses/LICENSE"] = open(os.path.join(ROOT, "LICENSE"), "rb").read()
    record = "".join("%s,sha256=%s,%d\n" % (
        path, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data))
        for path, data in files.items())
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    os.makedirs(dir, exist_ok=True)
    path = os.path.join(dir, "%s-%s.whl" % (name, tag))
    with zipfile.ZipFile(path + ".part", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for file, data in files.items():
            entry = zipfile.ZipInfo(file, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if file.startswith(SCRIPTS) else 0o100644) << 16  # of a file
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    os.replace(path + ".part", path)
    return path


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--arch", default=platform.machine())
    args = p.parse_args()
    tools = "" if args.arch == platform.machine() else args.arch + "-linux-gnu-"
    files = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "python/drey/*.py")) +
                       [os.path.join(ROOT, "python/drey/py.typed")]):
        files["drey/" + os.path.basename(path)] = open(path, "rb").read()
    with tempfile.TemporaryDirectory() as folder:
        library, command, made = (os.path.join(folder, name) for name in ("libdrey.so", "drey", "_declarations.py"))
        build_both(args.build, library, command, tools)
        write_declarations(made, folder)
        files["drey/libdrey.so"] = open(library, "rb").read()
        files[SCRIPTS + "drey"] = open(command, "rb").read()
        files["drey/_declarations.py"] = open(made, "rb").read()
        tag = "py3-none-manylinux_2_%d_%s" % (newest_libc(library, tools), args.arch)
    print(write_wheel(args.dir, files, tag))


if __name__ == "__main__":
    sys.exit(main())
