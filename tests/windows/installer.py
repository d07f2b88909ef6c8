#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The installer under Wine: installed, used, upgraded, not downgraded, removed, and taken back where it fails.

usage: installer.py
SLUICE_WINDOWS_BUILD_DIR is the Windows build (default: build-windows/), with sluice-windows.zip in it.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import service
import wine as wine_module
from service import check, ctl, in_c, state, uses, wait_for

BUILD_MSI = service.ROOT / "deploy" / "windows" / "build-msi.sh"
ENTRIES = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall"
VERSIONS = ("0.1.0", "0.1.1")


def make(folder, package):
    """Installers of both versions; their programs are the same."""
    with zipfile.ZipFile(package) as files:
        files.extractall(folder)
    made = []
    for version in VERSIONS:
        made.append(folder / f"sluice-{version}.msi")
        subprocess.run([BUILD_MSI, folder / "sluice", version, made[-1]], check=True, stdout=subprocess.DEVNULL)
    return made


def msiexec(wine, how, msi, *properties):
    log = wine.directory / "msi.log"
    code, output = wine.run(["msiexec", how, wine_module.windows_path(msi), "/qn", "/l*v", wine_module.windows_path(log),
                             *properties], seconds=300)
    text = log.read_bytes().decode("utf-16-le" if b"\0" in log.read_bytes()[:100] else "utf-8", "replace") if log.is_file() else ""
    return code, output + text[-2000:]


def entries(wine):
    """The versions of Sluice among the installed programs."""
    _, output = wine.run(["reg", "query", ENTRIES, "/s"], seconds=60)
    found = []
    for block in output.split("\n\n"):
        values = {line.split(None, 2)[0]: line.split(None, 2)[-1].strip() for line in block.splitlines()
                  if line.startswith("    ")}
        if values.get("DisplayName") == "Sluice":
            found.append(values.get("DisplayVersion"))
    return found


def service_line(wine):
    _, output = wine.run(["reg", "query", r"HKLM\SYSTEM\CurrentControlSet\Services\Sluice"], seconds=60)
    return output


def nothing_left(wine, name):
    code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    check(f"{name}: no service", code != 0 and "STATE" not in output, (code, output))
    _, output = wine.run(["reg", "query", wine_module.VENDORS], seconds=30)
    check(f"{name}: no driver's entry", "sluice_icd.dll" not in output, output)
    left = [str(path) for path in in_c(wine, "Program Files", "Sluice").rglob("*") if path.is_file()]
    check(f"{name}: no files", not left, left)
    check(f"{name}: no entry among the installed programs", entries(wine) == [], entries(wine))


def runs(wine, name):
    running = wait_for(f"{name}: the service runs", 120, lambda: state(wine) == "RUNNING")
    check(f"{name}: the service runs", bool(running), state(wine))
    code, devices = ctl(wine, "devices", "--json")
    check(f"{name}: it has a device", code == 0 and devices["platforms"], (code, devices))
    code, output = uses(wine, "pipe:sluice-broker")
    check(f"{name}: a program uses it through OpenCL's loader", code == 0, (code, output))


def installs(wine, first, later):
    config = wine.directory / "kept.toml"
    config.write_text("[limits]\nmax_sessions = 7\n")
    kept = wine_module.windows_path(config)
    code, output = msiexec(wine, "/i", first, f"INSTALLFLAGS=--manual --config {kept}")
    check("install", code == 0, (code, output))
    check("install: its entry among the installed programs", entries(wine) == [VERSIONS[0]], entries(wine))
    runs(wine, "install")
    code, output = msiexec(wine, "/i", later, f"INSTALLFLAGS=--manual --config {kept}")
    check("upgrade", code == 0, (code, output))
    check("upgrade: one entry among the installed programs", entries(wine) == [VERSIONS[1]], entries(wine))
    runs(wine, "upgrade")
    line = service_line(wine)
    check("upgrade: the flags reach the service", kept in line and "0x3" in line, line)
    code, output = msiexec(wine, "/i", first)
    check("downgrade: refused", code != 0, (code, output))
    check("downgrade: what is there stays", entries(wine) == [VERSIONS[1]] and state(wine) == "RUNNING",
          (entries(wine), state(wine)))
    code, output = msiexec(wine, "/x", later)
    check("remove", code == 0, (code, output))
    nothing_left(wine, "remove")


def fails(wine, msi):
    """A configuration that the service would not take: nothing is installed."""
    config = in_c(wine, "ProgramData", "Sluice", "sluiced.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[broker]\nsockets = 1\n")
    code, output = msiexec(wine, "/i", msi)
    check("wrong configuration: refused", code != 0, (code, output))
    nothing_left(wine, "wrong configuration")
    config.unlink()


def main():
    reason = wine_module.missing()
    if reason is None and shutil.which("wixl") is None:
        reason = "wixl is not installed (deploy/install-deps.sh --windows)"
    if reason is None and not service.PACKAGE.is_file():
        reason = f"{service.PACKAGE} is not there (deploy/windows/build.sh)"
    if reason:
        print(f"SKIP windows installer: {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="sluice-msi-") as folder, wine_module.Wine() as wine:
        wine.environment.update(WINEDLLOVERRIDES=service.OPENCL)
        service.keep_one_service_manager(wine)
        wine.programs = in_c(wine, "Program Files", "Sluice", "bin")
        first, later = make(pathlib.Path(folder), service.PACKAGE)
        installs(wine, first, later)
        fails(wine, first)
    print(f"{len(service.FAILURES)} failed")
    return 1 if service.FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
