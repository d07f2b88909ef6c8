#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the configure step refuses, it refuses in words that help: a 32-bit target, and a missing dependency,
with the Debian package that has it. One package is really hidden; that the table of dependencies names the others is
seen in a script that finds nothing, which takes no time. What the table names, install-deps.sh installs, and whatever
the sources include from a package of their own is in the table."""
import pathlib
import re
import subprocess
import sys
import tempfile

import tree

REFUSALS = {
    # The compiler is tried without linking: a machine need not have the libraries of such a target.
    "a 32-bit target": (["-DCMAKE_C_FLAGS=-m32", "-DCMAKE_CXX_FLAGS=-m32",
                         "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"], ["64-bit"]),
    "a client's prefix that is none": (["-DSLUICE_CLIENT_PREFIX=/nonexistent"], ["/nonexistent", "deploy/portable/build.sh"]),
    "Slurm's plugin with the client alone": (["-DSLUICE_CLIENT_PREFIX=/nonexistent", "-DSLUICE_SLURM=ON"],
                                             ["plugin for Slurm", "leave out SLUICE_SLURM"]),
    "no spdlog": (["-DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON"], ["libspdlog-dev", "install-deps.sh"]),
}

# No project: what looks for something finds nothing.
TABLE_SCRIPT = """
foreach(name find_package find_path find_program find_library pkg_check_modules)
  function(${name})
  endfunction()
endforeach()
list(APPEND CMAKE_MODULE_PATH @ROOT@/deploy/cmake)
include(SluiceDependencies)
"""
# What one is asked to install for another: Debian's package of the headers, and what stands for it.
STANDS_FOR = {"opencl-c-headers": "opencl-headers", "libglx-dev": "libgl-dev"}
# Come with a compiler.
WITH_THE_COMPILER = re.compile(r"^(libc6-dev|linux-libc-dev|libstdc\+\+-.*|libgcc-.*|lib.*san.*|g\+\+.*|gcc.*)$")
# The quickstart links its own program to it; the product links none.
QUICKSTART = {"ocl-icd-opencl-dev"}
# May be absent: the tests then lay out what it would.
OPTIONAL = {"android-libcutils-dev"}


def table_packages(options, problems):
    """What somebody who has nothing is told to install."""
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        script.write(TABLE_SCRIPT.replace("@ROOT@", str(tree.ROOT)))
        script.flush()
        done = subprocess.run([sys.argv[1], *options, "-P", script.name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    if done.returncode == 0 or "install-deps.sh" not in output:
        problems.append(f"with nothing to be found the table of dependencies says: {output.strip()[-200:]}")
    lines = re.findall(r"apt-get install ([^\n]*)", output)
    return {package for line in lines for package in line.split()}


def installed_packages(part):
    listed = subprocess.run([str(tree.ROOT / "deploy/install-deps.sh"), part, "--list"], stdout=subprocess.PIPE,
                            check=True)
    return set(listed.stdout.decode().split())


def included_packages(folders, without):
    """Which of Debian's packages have the headers that these folders' files include: {package: a header}."""
    headers = set()
    for path in tree.files(".h", ".cc", ".c"):
        name = tree.relative(path)
        if name.startswith(folders) and "/windows/" not in name and not name.startswith(without):
            headers.update(re.findall(r"^\s*#\s*include <([\w./+-]+\.h(?:pp)?)>", tree.read(path), re.M))
    folders_of_headers = [pathlib.Path("/usr/include"), *pathlib.Path("/usr/include").glob("*-linux-gnu")]
    files = [str(folder / header) for folder in folders_of_headers for header in headers
             if (folder / header).is_file()]
    try:
        found = subprocess.run(["dpkg-query", "--search", *files], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=False).stdout.decode()
    except OSError:
        return {}  # No Debian.
    packages = {}
    for owners, header in re.findall(r"^(\S.*): /usr/include/(?:\w+-linux-gnu/)?(\S+)$", found, re.M):
        for owner in owners.split(", "):
            package = owner.split(":")[0]
            if not WITH_THE_COMPILER.match(package):
                packages[STANDS_FOR.get(package, package)] = header
    return packages


def check_table(problems):
    product = ("proto/", "broker/", "client_icd/", "daemon/", "platform_linux/", "deploy/")
    tests = tuple(f"tests/{folder}/" for folder in (
        "bench", "complete_driver", "conformance", "fake_cl", "hostile", "loopback", "sharing", "system", "unit"))
    count = 0
    slurm = ("deploy/slurm/",)
    with_tests = "-DSLUICE_BUILD_TESTS=ON"
    for options, part, folders, without in ((["-DSLUICE_BUILD_TESTS=OFF"], "--build", product, slurm),
                                            ([with_tests], "--test", product + tests, slurm),
                                            ([with_tests, "-DSLUICE_SLURM=ON"], "--slurm", product + tests, ())):
        table = table_packages(options, problems)
        count = len(table)
        installed = installed_packages(part)
        problems += [f"install-deps.sh {part} does not install {package}, which the configure step asks for"
                     for package in sorted(table - installed) if not WITH_THE_COMPILER.match(package)]
        problems += [f"the configure step does not look for {package} ({header}), {' '.join(options)}"
                     for package, header in sorted(included_packages(folders, without).items())
                     if package not in table | OPTIONAL]
        # Libraries are installed to be built with.
        problems += [f"install-deps.sh {part} installs {package}, for which the configure step does not look"
                     for package in sorted(installed - table - OPTIONAL - QUICKSTART) if package.endswith(("-dev", "-headers"))]
    return count


def main():
    problems = []
    packages = check_table(problems)
    for what, (flags, words) in REFUSALS.items():
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run([sys.argv[1], "-S", str(tree.ROOT), "-B", build, "-G", "Ninja", *flags],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        output = " ".join(done.stdout.decode(errors="replace").split())
        if done.returncode == 0:
            problems.append(f"{what}: configured all the same")
        problems += [f"{what}: the message does not say {word}" for word in words if word not in output]
    tree.finish(problems, f"{len(REFUSALS)} configurations are refused in words that help, and {packages} packages named")


if __name__ == "__main__":
    main()
