#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The daemon for Windows under Wine: platform_win's own tests, sluiced --console asked by sluicectl, and the service
through the service control manager. Devices are PoCL's, behind Wine's OpenCL.dll.

usage: service.py
SLUICE_WINDOWS_BUILD_DIR is the Windows build (default: build-windows/).
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or ROOT / "build-windows").resolve()
BIN = BUILD / "bin"
PACKAGE = BUILD / "sluice-windows.zip"
PACKED = ("sluiced.exe", "sluicectl.exe", "sluice-worker.exe", "sluice-gateway.exe", "sluice-allocator.exe",
          "sluice_icd.dll", "sluice.dll")
PROGRAMS = PACKED[:5]
TEXTS = ("README.txt", "LICENSE.txt", "include/CL/cl_nv_d3d11_sharing.h", "include/CL/cl_sluice.h",
         "include/sluice/sluice.h", "include/sluice/sluice_d3d11.h", "lib/libsluice.dll.a",
         *(f"licenses/{name}.txt" for name in (
             "abseil", "c-ares", "gcc", "grpc", "mingw-w64", "openssl", "protobuf", "re2", "zlib")))
SYSTEMS = {"advapi32", "api-ms-win-core-synch-l1-2-0", "bcrypt", "dbghelp", "iphlpapi", "kernel32", "msvcrt", "ntdll",
           "shell32", "user32", "ws2_32"}
PIPE = r"\\.\pipe\sluice-console Gerät Δ"  # Not in one code page.
OPENCL = "mscoree,mshtml="  # Wine's own OpenCL.dll: the worker's driver.
FAILURES = []


def check(name, good, detail=""):
    print(f"{'PASS' if good else 'FAIL'} {name}" + ("" if good else f": {detail}"))
    if not good:
        FAILURES.append(name)


def in_c(wine, *names):
    """A path on Wine's disk C:, where folders are one user's alone, unlike those above a checkout or in /tmp."""
    return pathlib.Path(wine.environment["WINEPREFIX"]).joinpath("drive_c", *names)


def unpack(wine):
    """The folder of Sluice's programs, as an administrator has unpacked them."""
    folder = in_c(wine, "Program Files")
    if PACKAGE.is_file() and all(PACKAGE.stat().st_mtime >= (BIN / name).stat().st_mtime for name in PACKED):
        with zipfile.ZipFile(PACKAGE) as package:
            package.extractall(folder)
        missing = [name for name in TEXTS if not (folder / "sluice" / name).is_file()]
        check(f"{PACKAGE.name} has its texts and headers", not missing, missing)
        print(f"PASS {PACKAGE.name} is unpacked, and the service runs out of it")
        return folder / "sluice" / "bin"
    print(f"SKIP {PACKAGE.name}: it is not there, or older than the programs, which are taken instead")
    folder = folder / "sluice" / "bin"
    folder.mkdir(parents=True)
    for name in PACKED:
        shutil.copy2(BIN / name, folder)
    return folder


def imports():
    """Nothing but the system's libraries is needed beside the programs, whose files say what they are."""
    for name in PACKED:
        text = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", BIN / name], capture_output=True, text=True,
                              check=True).stdout
        found = {line.split()[-1].lower().removesuffix(".dll") for line in text.splitlines() if "DLL Name:" in line}
        check(f"{name} needs the system's libraries alone", found and found <= SYSTEMS, found - SYSTEMS)
        data = (BIN / name).read_bytes()
        check(f"{name} has its name and version", all(word.encode("utf-16-le") in data for word in (
            "VS_VERSION_INFO", "ProductVersion", name)), name)


def ctl(wine, *arguments, endpoint=None, programs=None):
    """sluicectl's exit code, and its JSON or text."""
    command = [(programs or wine.programs) / "sluicectl.exe", *arguments]
    if endpoint:
        command += ["--endpoint", endpoint]
    code, output = wine.run(command, seconds=60)
    try:
        return code, json.loads(output)
    except ValueError:
        return code, output


def wait_for(what, seconds, step):
    """What `step` returns once that is true; None when the time is over. Processes of Wine tell us nothing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = step()
        if result:
            return result
        time.sleep(0.3)
    check(what, False, f"not in {seconds} s")
    return None


def keep_one_service_manager(wine):
    """A program that is started while the making of the prefix still ends its services gets a second service manager,
    and the two answer in turn. So: end all, and begin again in the prefix that is made."""
    wine.idle.stdin.close()
    for how in ("-k", "-w"):
        subprocess.run([wine_module.server(), how], env=wine.environment, stdin=subprocess.DEVNULL, timeout=60,
                       check=False)
    wine.idle.wait()
    wine.idle = subprocess.Popen(["wine", "cmd"], env=wine.environment, stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wine.run(["cmd", "/c", "exit"], seconds=60)  # Its services are there once this has run.


def unit_tests(wine):
    code, output = wine.run_tests([BIN / "platform_win_test.exe"], seconds=300)
    check("platform_win_test", code == 0, output[-3000:])
    code, output = wine.run_tests(["cmd", "/c", "exit"], seconds=60)
    check("a program without tests passes none", code == 1, output)


def answered(wine, endpoint):
    def ask():
        code, status = ctl(wine, "status", "--json", endpoint=endpoint)
        return status if code == 0 else None
    return wait_for("sluicectl status answers", 60, ask)


def texts(wine):
    """Help names what Windows has."""
    linux = ("/etc/", "/run/", ".sock", "SIG", "sudo", "`run`", "systemctl", "XDG_")
    for line, names in ((("sluicectl.exe",), ("pipe:sluice-broker", "install")),
                        (("sluicectl.exe", "status"), (r"\\.\pipe\sluice-broker-admin",)),
                        (("sluiced.exe",), (r"\Sluice\sluiced.toml", "sc.exe stop Sluice", r"\\.\pipe\NAME"))):
        code, output = wine.run([BIN / line[0], *line[1:], "--help"], seconds=60)
        missing = [name for name in names if name not in output]
        found = [word for word in linux if word in output]
        check(f"texts: {' '.join(line)} --help", code == 0 and not missing and not found, (missing, found, output))
    code, output = wine.run([BIN / "sluicectl.exe", "listener", "add", "--help"], seconds=60)
    refused_there = [flag for flag in ("--group", "--share", "--interactive-percent") if flag in output]
    check("texts: listener add --help offers nothing that the service refuses",
          code == 0 and "--max-sessions" in output and not refused_there, (code, refused_there, output))
    for command in ("devices", "status"):
        code, output = ctl(wine, command)
        check(f"texts: {command} without a service", code == 3 and "sluicectl install" in output and "doctor" not in output,
              (code, output))
    code, output = ctl(wine, "devices", endpoint="unix:/tmp/x")
    check("texts: another system's endpoint", code != 0 and "pipe:NAME" in output, (code, output))
    code, output = ctl(wine, "devices", endpoint="pipe:a/b")
    check("texts: a pipe's name with a slash", code != 0 and 'without "/"' in output, (code, output))
    code, output = ctl(wine, "devices", endpoint=",,")
    check("texts: no endpoint", code != 0 and "names no endpoint" in output, (code, output))
    for name, word, command in (("of nothing", "excludes", ("install", "--no-service", "--no-driver")),
                                ("of a service's configuration without one", "excludes",
                                 ("install", "--no-service", "--config", "C:\\none.toml")),
                                ("of how no service starts", "excludes", ("install", "--no-service", "--manual")),
                                ("with an endpoint", "SLUICE_ENDPOINT", ("--endpoint", "pipe:other", "install")),
                                ("uninstall with an endpoint", "SLUICE_ENDPOINT", ("--endpoint=a:1", "uninstall"))):
        code, output = ctl(wine, *command)
        check(f"texts: install {name}", code == 2 and word in output, (code, output))
    for program in ("sluicectl.exe", "sluiced.exe"):
        for word in ("/?", "-?"):
            code, output = wine.run([BIN / program, word], seconds=60)
            check(f"texts: {program} {word}", code == 0 and "--help" in output, (code, output))
    code, output = ctl(wine, "install", "--confg", "x")
    check("texts: words that install does not know, in order", code == 2 and "not expected: --confg x" in output,
          (code, output))
    code, output = ctl(wine, "devices", endpoint="127.0.0.1:1")
    check("texts: nobody at a network endpoint", code == 3 and "no daemon listens" in output, (code, output))
    code, output = ctl(wine, "run")
    check("texts: run is not here", code == 2 and "run does not exist on Windows" in output, (code, output))
    code, output = ctl(wine, "run", "clinfo.exe", "-l")
    check("texts: nor with a program", code == 2 and "run does not exist on Windows" in output, (code, output))
    code, output = ctl(wine, "export-client", "x")
    check("texts: nor what containers need", code == 2 and "export-client does not exist on Windows" in output, (code, output))


def monitor(wine):
    """The monitor pipe shows what the admin pipe shows, and changes nothing."""
    for command in ("status", "sessions", "resources"):
        code, answer = ctl(wine, command, "--json", "--admin-socket", PIPE + "-monitor")
        check(f"monitor: {command}", code == 0 and "error" not in answer, (code, answer))
    for command in (("kill", "1234"), ("drain",)):
        code, answer = ctl(wine, *command, "--json", "--admin-socket", PIPE + "-monitor")
        check(f"monitor: {command[0]} is refused", code == 1 and "only shows" in answer.get("error", "") and
              PIPE + "-admin" in answer["error"], (code, answer))


def doctor(wine, endpoint):
    """Why a program sees no device: each fault alone. The system's loader is the tests', in the system's folder."""
    found = in_c(wine, "windows", "system32", "opencl.dll")
    kept = found.rename(found.with_suffix(".kept"))
    shutil.copy2(BIN / "OpenCL.dll", found)
    driver = wine_module.windows_path(BIN / "sluice_icd.dll")

    def examine(what, at, exit_code, failed, loader="n"):
        code, output = wine.run([BIN / "sluicectl.exe", "doctor", "--json", "--endpoint", at], seconds=120,
                                WINEDLLOVERRIDES=f"mscoree,mshtml=;opencl={loader}")
        try:
            steps = {step["step"]: step for step in json.loads(output)["steps"]}
        except (ValueError, KeyError):
            steps = {}
        wrong = {name for name, step in steps.items() if step["result"] == "failed"}
        check(f"doctor: {what}", code == exit_code and steps and wrong == set(failed) and
              all(steps[name]["advice"] for name in wrong), (code, output))
        return steps
    steps = examine("all is well", endpoint, 0, [])
    check("doctor: the driver that is registered", steps.get("driver's entry", {}).get("found") == driver, steps)
    check("doctor: what a program's loader lists", "Sluice (" in steps.get("application's view", {}).get("found", ""), steps)
    code, output = wine.run([BIN / "sluicectl.exe", "doctor", "--endpoint", endpoint], seconds=120,
                            WINEDLLOVERRIDES="mscoree,mshtml=;opencl=n")
    check("doctor: in words", code == 0 and "sees Sluice's devices" in output and "system32" in output.lower(), (code, output))
    examine("no daemon", "pipe:nobody", 1, ["daemon's pipe", "application's view"])
    examine("no daemon on the network", "127.0.0.1:1", 1, ["daemon on the network", "application's view"])
    steps = examine("no loader", endpoint, 1, ["OpenCL loader"], loader="")
    check("doctor: no loader, no view", steps.get("application's view", {}).get("result") == "skipped", steps)
    wine.must("reg", "delete", wine_module.VENDORS, "/f")
    examine("no entry", endpoint, 1, ["driver's entry", "application's view"])
    wine.must("reg", "add", wine_module.VENDORS, "/v", r"C:\none\sluice_icd.dll", "/t", "REG_DWORD", "/d", "0", "/f")
    examine("a driver that is gone", endpoint, 1, ["driver", "application's view"])
    wine.must("reg", "delete", wine_module.VENDORS, "/f")
    wine.register_driver(BIN / "sluice_icd.dll")
    found.unlink()
    kept.rename(found)


def console(wine):
    """Starts as a program, answers, refuses a second one, and stops when it is drained."""
    endpoint = "pipe:" + PIPE
    log = wine.directory / "console.log"
    with open(log, "wb") as output:
        daemon = subprocess.Popen(["wine", str(BIN / "sluiced.exe"), "--console", "--socket", PIPE],
                                  env={**wine.environment, "WINEDLLOVERRIDES": OPENCL + ";opencl=b"},
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        status = answered(wine, endpoint)
        if status is None:
            print(log.read_text(errors="replace"))
            return
        check("console: endpoint", status["endpoints"] == [endpoint], status)
        devices = wait_for("console: devices are listed", 60, lambda: (lambda code, found: found if code == 0 else None)(
            *ctl(wine, "devices", "--json", endpoint=endpoint)))
        names = [device["name"] for platform in (devices or {}).get("platforms", []) for device in platform["devices"]]
        check("console: a device of Wine's OpenCL.dll", bool(names), devices)
        code, sessions = ctl(wine, "sessions", "--json", endpoint=endpoint)
        check("console: sessions", code == 0 and sessions == {"sessions": []}, sessions)
        code, answer = ctl(wine, "kill", "1234", "--json", endpoint=endpoint)
        check("console: kill of no session", code == 4, answer)
        for flag, value in (("--group", "Users"), ("--share", "200"), ("--interactive-percent", "20")):
            code, output = ctl(wine, "listener", "add", "t", flag, value, endpoint=endpoint)
            check(f"console: listener add {flag} is refused, and said why",
                  code not in (0, 124) and "on Windows" in output, (code, output))
        monitor(wine)
        code, output = wine.run([BIN / "sluicectl.exe", "status"], seconds=60, SLUICE_ENDPOINT=endpoint)
        check("console: sluicectl by the environment", code == 0, output)
        wine.register_driver(BIN / "sluice_icd.dll")
        code, output = uses(wine, endpoint)
        check("console: the driver by the environment", code == 0, output)
        doctor(wine, endpoint)
        code, output = wine.run([BIN / "list_platforms.exe"], seconds=60,
                                SLUICE_ENDPOINT=f"{endpoint},{endpoint.replace('console', 'CONSOLE')}",
                                WINEDLLOVERRIDES="mscoree,mshtml=;opencl=n")
        check("console: one daemon by two ways of writing its name", code == 0 and output.count("Sluice (") == 1,
              (code, output))
        wine.must("reg", "delete", wine_module.VENDORS, "/f")
        code, output = wine.run([BIN / "sluiced.exe", "--console", "--socket", PIPE], seconds=60)
        check("console: a second daemon is refused", code == 3, (code, output))
        code, answer = ctl(wine, "drain", "--json", endpoint=endpoint)
        check("console: drain", code == 0 and answer == {"sessions_left": 0}, answer)
        check("console: ends by itself", daemon.wait(timeout=30) == 0, log.read_text(errors="replace"))
        code, answer = ctl(wine, "status", "--json", endpoint=endpoint)
        check("console: nobody answers afterwards", code == 3, answer)
    except subprocess.TimeoutExpired:
        check("console: ends by itself", False, log.read_text(errors="replace"))
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()


def refused(wine):
    """Who is refused hears why, and nothing of a service: the daemon is there. Its log names the user as Windows does."""
    config = wine.directory / "refused.toml"
    config.write_text("[access]\nusers = 'SYSTEM'\n")
    log = wine.directory / "refused.log"
    with open(log, "wb") as output:
        daemon = subprocess.Popen(["wine", str(BIN / "sluiced.exe"), "--console", "--socket", PIPE, "--config",
                                   wine_module.windows_path(config)],
                                  env={**wine.environment, "WINEDLLOVERRIDES": OPENCL}, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT)
    try:
        answered(wine, "pipe:" + PIPE)
        code, output = ctl(wine, "devices", endpoint="pipe:" + PIPE)
        check("refused: by [access]", code != 0 and "[access]" in output and "no service" not in output, (code, output))
        ctl(wine, "drain", endpoint="pipe:" + PIPE)
        daemon.wait(timeout=30)
        said = log.read_text(errors="replace")
        check("refused: the log", "sid:S-1-" in said and "uid=" not in said and "landlock" not in said, said)
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()


def state(wine):
    _, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    for line in output.splitlines():
        if "STATE" in line:
            return line.split()[-1]
    return output


def control(wine, what):
    """What the service answers to this control, an error or 0, and its state, accepted controls, checkpoint and hint."""
    code, output = wine.run([BIN / "service_control.exe", "Sluice", what], seconds=60)
    facts = facts_of(output) if code == 0 else {"output": output}
    return facts.pop("answer", None), facts


def facts_of(text):
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2])))


def stop_and_follow(wine):
    """Each thing that the service says of itself from a stop on. One program sees all of them: on a busy machine another
    one would begin too late."""
    code, output = wine.run([BIN / "service_control.exe", "Sluice", "stop"], seconds=120)
    lines = output.splitlines()
    check("service_control stops it", code == 0 and lines[:1] == ["answer 0"], (code, output))
    return [facts_of(line) for line in lines if line.startswith("state ")]


RUNNING = {"state": 4, "accepts": 1 | 4 | 8, "checkpoint": 0, "hint": 0}  # Stop, shutdown, parameter change.
STARTING = {"state": 2, "accepts": 0, "checkpoint": 1, "hint": 60_000}
REFUSED = 1052  # ERROR_INVALID_SERVICE_CONTROL


def controls(wine, config):
    """Pause is refused, and the change of a parameter has the configuration read again."""
    for what, answer in (("pause", REFUSED), ("continue", REFUSED), ("interrogate", 0)):
        answered_with, facts = control(wine, what)
        check(f"service: {what} is answered with {answer}", (answered_with, facts) == (answer, RUNNING),
              (answered_with, facts))
    before = config.read_text()
    config.write_text(before + "[limits]\nmax_sessions = 7\n")
    answer, facts = control(wine, "paramchange")
    check("service: a parameter change is taken", (answer, facts) == (0, RUNNING), (answer, facts))
    wait_for("service: it has read its configuration again", 60,
             lambda: (answered(wine, None) or {}).get("session_limit") == 7)
    config.write_text(before)


def uses(wine, endpoint, program="vector_add"):
    """A program that finds the driver in the registry, where installing has put it."""
    return wine.run([BIN / f"{program}.exe"], seconds=60, SLUICE_ENDPOINT=endpoint, SLUICE_TEST_KIND="network",
                    WINEDLLOVERRIDES="mscoree,mshtml=;opencl=n")


def folder_of(wine, program):
    """The host's folder in which a program of this prefix runs."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        process = pathlib.Path("/proc", entry)
        try:
            mine = wine.environment["WINEPREFIX"].encode() in (process / "environ").read_bytes()
            if mine and program.encode() in (process / "cmdline").read_bytes():
                return pathlib.Path(os.readlink(process / "cwd"))
        except OSError:  # It has ended, or is somebody else's.
            continue
    return None


def headers(wine, endpoint):
    """A service's worker lays out a program's headers. The compiler behind Wine's OpenCL.dll is the host's, and takes
    C:/... for a file in the folder that it runs in, which is the service's."""
    link = folder_of(wine, "sluiced.exe") / "C:"
    link.symlink_to(in_c(wine))
    try:
        code, output = uses(wine, endpoint, "with_headers")
    finally:
        link.unlink()
    check("service: a program with headers", code == 0, output)
    left = [str(path) for path in in_c(wine).glob("**/sluice-work/sluice-include-*")]
    check("service: its headers are gone", not left, left)


def service(wine):
    """Install, start, stop, start again, uninstall: twice each, where that must be harmless. It serves the network, too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        network = f"127.0.0.1:{probe.getsockname()[1]}"
    config = wine.directory / "service.toml"
    config.write_text(f'[[network]]\nlisten = "{network}"\n')
    for name in ("first", "again"):
        code, output = ctl(wine, "install", "--manual", "--config", wine_module.windows_path(config))
        check(f"service: install, {name}", code == 0 and "sc.exe stop" not in output and "no loader" not in output, output)
    code, output = wine.run(["reg", "query", wine_module.VENDORS], seconds=30)
    check("service: the driver is registered once", output.count("sluice_icd.dll") == 1, output)
    code, output = wine.run([BIN / "sluiced.exe"], seconds=60)
    check("service: not by hand", code == 2 and "--console" in output, (code, output))
    pids = set()
    for name in ("start", "restart"):
        code, output = wine.run(["sc", "start", "Sluice"], seconds=60)
        check(f"service: {name}", code == 0, output)
        wait_for(f"service: {name} is reported with a checkpoint", 60,
                 lambda: control(wine, "query")[1] in (STARTING, RUNNING))
        status = answered(wine, None)
        # It answers from its start, and is RUNNING once its first look at the devices is over: as READY=1 for systemd.
        running = wait_for(f"service: runs after {name}", 120, lambda: state(wine) == "RUNNING")
        check(f"service: runs after {name}", bool(running), state(wine))
        pids.add((status or {}).get("pid"))
        code, output = uses(wine, network)
        check(f"service: serves the network after {name}", code == 0, output)
        code, devices = ctl(wine, "devices", "--json", endpoint=network)
        check(f"service: sluicectl sees its devices over the network after {name}", code == 0 and devices["platforms"],
              devices)
        if name == "start":
            code, output = ctl(wine, "install", "--manual", "--config", wine_module.windows_path(config))
            check("service: install, while it runs", code == 0 and "until `sc.exe stop Sluice`" in output, (code, output))
            headers(wine, network)
            controls(wine, config)
        code, output = wine.run(["sc", "stop", "Sluice"], seconds=60)
        check("service: stop is taken", code == 0, output)
        wait_for("service: stops", 60, lambda: state(wine) == "STOPPED")
        check("service: is stopped", state(wine) == "STOPPED", state(wine))
        code, output = uses(wine, network)
        check("service: its gateway is gone", code not in (0, 124), (code, output))
    check("service: two processes, one after the other", len(pids) == 2 and None not in pids, pids)
    code, output = ctl(wine, "install", "--manual", "--config", "C:\\a %TEMP% b.toml")
    check("service: install, a percent sign", code != 0 and "percent" in output, output)
    code, output = ctl(wine, "install", "--manual", "--config", "\\\\server\\share\\none.toml")
    check("service: install, a file of another machine's", code != 0 and "\\\\server\\share\\none.toml" in output, output)
    # It is starting when it is to go.
    wine.run(["sc", "start", "Sluice"], seconds=60)
    for name in ("first", "again"):
        code, output = ctl(wine, "uninstall")
        check(f"service: uninstall, {name}", code == 0, output)
    code, output = wine.run(["reg", "query", wine_module.VENDORS], seconds=30)
    check("service: the driver is no longer registered", "sluice_icd.dll" not in output, output)


def broken(wine):
    """A configuration that is wrong: what the service manager and sluicectl say, and the start once it is right."""
    config = wine.directory / "broken.toml"
    config.write_text("")
    name = wine_module.windows_path(config)
    code, output = ctl(wine, "install", "--manual", "--no-driver", "--config", name)
    check("broken: install", code == 0, output)
    config.write_text("[broker]\nsockets = 1\n")
    code, output = ctl(wine, "status")
    check("broken: before the first start", code == 3 and "sc.exe start Sluice" in output, (code, output))
    wine.run(["sc", "start", "Sluice"], seconds=60)
    wait_for("broken: it ends", 60, lambda: state(wine) == "STOPPED")
    code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    codes = [line.split(":")[1].split()[0] for line in output.splitlines() if "EXIT_CODE" in line]
    check("broken: sc query has the exit code", codes == ["1066", "2"], output)
    for command in ("devices", "status"):
        code, output = ctl(wine, command)
        check(f"broken: {command} says what to look at", code == 3 and f'sluiced --check-config "{name}"' in output,
              (code, output))
    code, output = wine.run([BIN / "sluiced.exe", "--check-config", name], seconds=60)
    check("broken: and that says what is wrong", code == 2 and '"sockets"' in output, (code, output))
    config.write_text("")
    wine.run(["sc", "start", "Sluice"], seconds=60)
    check("broken: it starts when it is mended", answered(wine, None) is not None)
    code, output = ctl(wine, "uninstall")
    check("broken: uninstall", code == 0, output)


def killed(wine):
    """A service whose process was killed, which Wine's manager does not notice: status tells it, and uninstalling takes all
    of it away, which is no failure."""
    code, output = ctl(wine, "install", "--manual")
    check("killed: install", code == 0, output)
    wine.run(["sc", "start", "Sluice"], seconds=60)
    wait_for("killed: it runs", 120, lambda: state(wine) == "RUNNING")
    code, output = wine.run(["taskkill", "/f", "/im", "sluiced.exe"], seconds=60)
    check("killed: it is", code == 0, output)
    code, output = ctl(wine, "status")
    check("killed: status", code == 3 and "has ended" in output and "another socket" not in output, (code, output))
    code, output = ctl(wine, "uninstall")
    check("killed: uninstall", code == 0 and "service removed: Sluice" in output and "sluice_icd.dll" in output and
          "ended already" in output, (code, output))
    code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    check("killed: the service is gone", code != 0 and "STATE" not in output, (code, output))
    code, output = wine.run(["reg", "query", wine_module.VENDORS], seconds=30)
    check("killed: the driver is no longer registered", "sluice_icd.dll" not in output, output)


def in_use(wine):
    """An installation over one that runs, or is stopping for an application that goes on; what uninstalling says then."""
    config = wine.directory / "in_use.toml"
    config.write_text("[broker]\ndrain_timeout_ms = 600000\n")
    file = wine_module.windows_path(config)
    code, output = ctl(wine, "install", "--manual", "--config", file)
    check("in use: install", code == 0 and "started by hand" in output, (code, output))
    wine.run(["sc", "start", "Sluice"], seconds=60)
    answered(wine, None)
    code, output = ctl(wine, "install")
    check("in use: install over it tells what it changes, and when that counts", code == 0 and "started with Windows" in
          output and "instead of started by hand" in output and file in output and "until `sc.exe stop Sluice`" in output,
          (code, output))
    ctl(wine, "install", "--manual", "--config", file)
    application = subprocess.Popen(["wine", str(BIN / "restart_client.exe")], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**wine.environment, "WINEDLLOVERRIDES": "mscoree,mshtml=;opencl=n"})
    try:
        application.stdin.write(b"anew\n")
        application.stdin.flush()
        sessions = wait_for("in use: an application has a session", 60,
                            lambda: (lambda code, told: told["sessions"] if code == 0 else None)(
                                *ctl(wine, "sessions", "--json"))) or [{}]
        wine.run(["sc", "stop", "Sluice"], seconds=60)
        check("in use: it drains", state(wine) == "STOP_PENDING", state(wine))
        code, output = ctl(wine, "install", "--manual", "--config", file)
        check("in use: install while it stops", code == 0 and "it is stopping" in output and "sc.exe stop" not in output,
              (code, output))
        code, output = ctl(wine, "kill", sessions[0].get("session", ""))
        check("in use: its session is ended", code == 0, (code, output))
        code, output = ctl(wine, "uninstall")
        check("in use: uninstall", code == 0 and "service removed" in output and "driver removed" in output, (code, output))
    finally:
        application.kill()
        application.wait()
    ctl(wine, "install", "--manual", "--no-driver")
    wine.run(["sc", "start", "Sluice"], seconds=60)
    answered(wine, None)
    wine.must("sc", "delete", "Sluice")
    code, output = ctl(wine, "install", "--manual", "--no-driver")
    check("in use: install while a removed one runs", code == 1 and "not gone yet" in output, (code, output))
    code, output = ctl(wine, "uninstall")
    check("in use: uninstall of a removed one that runs", code == 0 and "service removed" in output, (code, output))
    code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    check("in use: it is gone", code != 0 and "STATE" not in output, (code, output))


def programs(wine, config):
    """The system runs nothing that anybody may change, nor from a folder into which anybody may put a library, nor from
    one that anybody may put in its place."""
    above = in_c(wine, "above")
    folder = above / "programs"
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copy2(BIN / name, folder)
    for changeable in (folder, folder / "sluiced.exe", above):
        before = changeable.stat().st_mode
        changeable.chmod(0o777)
        code, output = ctl(wine, "install", "--manual", "--no-driver", "--config", wine_module.windows_path(config),
                           programs=folder)
        changeable.chmod(before)
        check(f"install: {changeable.name} that everybody may change", code == 1 and "may be changed by" in output
              and "Program Files" in output and changeable.name in output, (code, output))


def incomplete(wine, config):
    """A service that could serve nobody is not made, nor one that would fail with its first network or resource."""
    folder = in_c(wine, "Program Files", "incomplete")
    folder.mkdir()
    for name in ("sluicectl.exe", "sluiced.exe", "sluice-gateway.exe"):
        os.link(wine.programs / name, folder / name)
    code, output = ctl(wine, "install", "--manual", "--no-driver", "--config", wine_module.windows_path(config),
                       programs=folder)
    check("install: without the worker", code == 1 and "incomplete lacks sluice-worker.exe, sluice-allocator.exe:" in output,
          (code, output))
    code, output = ctl(wine, "install", "--no-service", programs=folder)
    check("install: without the driver", code == 1 and "incomplete lacks sluice_icd.dll:" in output, (code, output))


def expanded(wine, config):
    """The service manager puts variables in for their names between percent signs, and so would start another program
    than the one that was looked at."""
    folder = in_c(wine, "Program Files", "x%OS%y")
    folder.mkdir()
    for name in PACKED:
        os.link(wine.programs / name, folder / name)
    code, output = ctl(wine, "install", "--manual", "--config", wine_module.windows_path(config), programs=folder)
    check("install: from a folder with percent signs", code == 1 and "x%OS%y" in output and "percent sign" in output and
          "unpack Sluice into" in output, (code, output))
    code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    check("install: no service was made then", code != 0 and "STATE" not in output, (code, output))


def no_programs(wine, config):
    """Files that only have the names of programs: nothing is registered that could not run."""
    folder = in_c(wine, "Program Files", "no programs")
    folder.mkdir()
    for name in PACKED:
        os.link(wine.programs / name, folder / name)
    library = (BIN / "sluice_icd.dll").read_bytes()
    for name, content, words in (("sluiced.exe", b"", "is empty"), ("sluice-worker.exe", b"", "is empty"),
                                 ("sluice_icd.dll", b"", "is empty"),
                                 ("sluice-allocator.exe", b"<html>404</html>" * 100, "is no program"),
                                 ("sluice-worker.exe", b"MZ" + b"\xff" * 4000, "is no program"),
                                 ("sluice-gateway.exe", library, "is a library"),
                                 ("sluice_icd.dll", library[:len(library) // 2], "is cut short"),
                                 ("sluice_icd.dll", library[:300], "is no program")):
        (folder / name).unlink()
        (folder / name).write_bytes(content)
        code, output = ctl(wine, "install", "--manual", "--config", wine_module.windows_path(config), programs=folder)
        check(f"install: {name} of {len(content)} bytes", code == 1 and f"{name} {words}" in output and
              "service" not in output and "driver:" not in output, (code, output))
        (folder / name).unlink()
        os.link(wine.programs / name, folder / name)


def drivers(wine):
    """What OpenCL's loader would load, and the service's command."""
    _, output = wine.run(["reg", "query", wine_module.VENDORS], seconds=30)
    _, command = wine.run(["reg", "query", r"HKLM\SYSTEM\CurrentControlSet\Services\Sluice", "/v", "ImagePath"], seconds=30)
    return [line.split("REG_DWORD")[0].strip() for line in output.splitlines() if "REG_DWORD" in line], command


def two_folders(wine, config):
    """Each sluicectl takes away what the one in its folder has registered, and names what it leaves."""
    other = in_c(wine, "Program Files", "other")
    other.mkdir()
    for name in PACKED:
        os.link(wine.programs / name, other / name)
    first, second, file = r"C:\Program Files\sluice\bin", r"C:\Program Files\other", wine_module.windows_path(config)
    code, output = ctl(wine, "install", "--manual", "--config", file, programs=other)
    check("two folders: install", code == 0 and "instead of" not in output and "replaced" not in output, (code, output))
    code, output = ctl(wine, "uninstall")
    advice = rf'`"{second}\sluicectl.exe" uninstall` removes it'
    check("two folders: uninstall leaves the other's", code == 0 and "service left: Sluice" in output and
          "driver left:" in output and output.count(advice) == 2, (code, output))
    check("two folders: both are there", drivers(wine)[0] == [rf"{second}\sluice_icd.dll"] and second in drivers(wine)[1],
          drivers(wine))
    code, output = ctl(wine, "install", "--manual")
    check("two folders: install replaces the other's, and says so", code == 0 and
          rf"driver replaced: {second}\sluice_icd.dll" in output and "instead of" in output and file in output and
          drivers(wine)[0] == [rf"{first}\sluice_icd.dll"] and second not in drivers(wine)[1], (code, output))
    code, output = ctl(wine, "uninstall", programs=other)
    check("two folders: now the other leaves them", code == 0 and output.count(" left: ") == 2, (code, output))
    code, output = ctl(wine, "uninstall")
    check("two folders: uninstall", code == 0 and "service removed" in output and "driver removed" in output and
          not drivers(wine)[0], (code, output))
    by_hand = r"C:\gone\Sluice_ICD.dll"
    for entry in (by_hand, rf"{first}\SLUICE_ICD.DLL".upper()):
        wine.must("reg", "add", wine_module.VENDORS, "/v", entry, "/t", "REG_DWORD", "/d", "0", "/f")
    code, answer = ctl(wine, "uninstall", "--json")
    steps = answer["steps"] if code == 0 else [answer]
    check("two folders: names of files have no case, and what was registered by hand stays", len(steps) == 2 and
          any(step.startswith(f"driver left: {by_hand}") and f'/v "{by_hand}" /f`' in step for step in steps) and
          any(step.startswith("driver removed: ") for step in steps) and drivers(wine)[0] == [by_hand], (code, answer))
    wine.must("reg", "delete", wine_module.VENDORS, "/f")


def at_once(wine, *commands):
    """sluicectl's exit code and text for each, all under way at the same time: folder of the programs, then arguments."""
    processes = []
    for number, (folder, *arguments) in enumerate(commands):
        with open(wine.directory / f"at once {number}", "wb") as output:
            processes.append(subprocess.Popen(["timeout", "-k", "5", "120", "wine", str(folder / "sluicectl.exe"), *arguments],
                                              env=wine.environment, stdin=subprocess.DEVNULL, stdout=output,
                                              stderr=subprocess.STDOUT))
    codes = [process.wait() for process in processes]
    return [(code, (wine.directory / f"at once {number}").read_text(errors="replace").replace("\r\n", "\n"))
            for number, code in enumerate(codes)]


def installed_folder(wine):
    """Of the service and of the one driver; "" if there is neither; else what is wrong with them."""
    entries, command = drivers(wine)
    service_of = command.split('"')[1].rsplit("\\", 1)[0] if '"' in command else ""
    driver_of = [entry.rsplit("\\", 1)[0] for entry in entries]
    return service_of if driver_of == ([service_of] if service_of else []) else f"service {command}, drivers {entries}"


def several_at_once(wine):
    """The last to install has service and driver, and each tells what it found: as if one had followed the other. One
    that is taken away meanwhile is whole until it is gone."""
    folders = {r"C:\Program Files\sluice\bin": wine.programs, r"C:\Program Files\other": in_c(wine, "Program Files", "other")}
    first, second = folders
    manual = ("install", "--manual")
    ctl(wine, *manual)
    for number in range(4):
        before = installed_folder(wine)
        told = at_once(wine, *((folder, *manual) for folder in [*folders.values()] * 2))
        after = installed_folder(wine)
        good = after in folders
        left = {first: 0, second: 0}
        for (code, output), own in zip(told, [*folders] * 2):
            found = [name for name in folders if rf"driver replaced: {name}\sluice_icd.dll" in output]
            changed = [name for name in folders if rf'instead of started by hand: "{name}\sluiced.exe"' in output]
            good = good and code == 0 and found == changed and own not in found
            for name in found:
                left[name] += 1
        # They take turns from the one that was there to the one that is.
        good = good and left[first] - left[second] == (before == first) - (after == first)
        check(f"at once: installations, round {number}", good, (before, after, told))
    for number in range(2):
        told = at_once(wine, *((folder, *what) for folder in folders.values() for what in (manual, ("uninstall",))))
        after = installed_folder(wine)
        check(f"at once: some uninstall, round {number}", after in ("", first, second) and not any(
            code for code, _ in told), (after, told))
    for folder in folders.values():
        ctl(wine, "uninstall", programs=folder)
    check("at once: nothing is left", installed_folder(wine) == "", drivers(wine))


def long_path(wine, config):
    """What the service manager and OpenCL's loader could not name, with 260 characters, is not registered."""
    for length in (260, 259):
        folder = in_c(wine, "Program Files", "a" * 100)
        folder /= "b" * (length - len("C:" + "/Program Files/" + folder.name + "/" + "/sluice-allocator.exe"))
        folder.mkdir(parents=True)
        for name in PROGRAMS:
            os.link(wine.programs / name, folder / name)
        code, output = wine.run([folder / "sluicectl.exe", "install", "--manual", "--no-driver", "--config",
                                 wine_module.windows_path(config)], seconds=60)
        refused_for_it = code == 1 and folder.name in output and "260 characters" in output and "259" in output
        check(f"install: a program whose path has {length} characters", refused_for_it if length > 259 else code == 0,
              (code, output))
    code, output = wine.run([folder / "sluicectl.exe", "uninstall"], seconds=60)
    check("install: and it goes", code == 0 and "service removed" in output, (code, output))


def foreign_name(wine, config):
    """Programs in a folder whose name is in no code page: OpenCL's loader would not find the driver, the service runs."""
    folder = in_c(wine, "Program Files", "Gerät Δ 鍵")
    folder.mkdir()
    for name in PACKED:
        os.link(wine.programs / name, folder / name)
    _, page = wine.run(["reg", "query", r"HKLM\SYSTEM\CurrentControlSet\Control\Nls\CodePage", "/v", "ACP"], seconds=30)
    if "65001" in page:  # Wine chooses by its locale.
        print("SKIP install: a driver whose name is in no code page: Wine's is UTF-8, which has all names")
    else:
        code, output = ctl(wine, "install", "--manual", programs=folder)
        check("install: a driver whose name is in no code page",
              code == 1 and folder.name in output and "code page" in output, (code, output, page))
        code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
        check("install: and no service is made", code != 0 and "STATE" not in output, (code, output))
    code, output = ctl(wine, "install", "--manual", "--no-driver", "--config", wine_module.windows_path(config),
                       programs=folder)
    check("install: a service whose name is in no code page", code == 0 and folder.name in output, (code, output))
    wine.run(["sc", "start", "Sluice"], seconds=60)
    check("install: it runs", answered(wine, None) is not None)
    code, output = ctl(wine, "uninstall", programs=folder)
    check("install: and goes", code == 0, (code, output))


def no_case(wine, file):
    """Names of pipes, variables and SIDs have no case: what another spelling would get past is refused all the same."""
    name = wine_module.windows_path(file)
    for text, words in (
            ("[broker]\nsocket = '\\\\.\\pipe\\sluice'\nadmin_socket = '\\\\.\\PIPE\\Sluice'\n",
             ("keys.toml:3:", '"admin_socket"', '"socket"', r"\\.\PIPE\Sluice")),
            ("[worker.environment]\nSluice_Worker = '0'\n", ("keys.toml:2:", "its own workers")),
            ("[worker.environment]\nPOCL_DEBUG = '0'\npocl_debug = '1'\n", ('"POCL_DEBUG"', '"pocl_debug"'))):
        file.write_text(text)
        code, output = wine.run([BIN / "sluiced.exe", "--check-config", name], seconds=60)
        check(f"no case: {text.splitlines()[-1]}", code == 2 and all(word in output for word in words), (code, output))
    code, output = wine.run([BIN / "sluiced.exe", "--console", "--socket", PIPE, "--admin-socket",
                             PIPE.replace("console", "CONSOLE")], seconds=60)
    check("no case: by flags", code == 2 and "--socket" in output and "--admin-socket" in output, (code, output))


def fixed_keys(wine):
    """What Windows has no use for is refused where it stands, by the check of a configuration and by install alike."""
    file = wine.directory / "keys.toml"
    name = wine_module.windows_path(file)
    for section, line, words in (
            ("worker", "user = 'root'", ('key "user" in [worker]', "cannot be chosen on Windows")),
            ("worker", "user = 'no-such-user'", ('key "user" in [worker]', "cannot be chosen on Windows")),
            ("worker", r"cache_directory = 'C:\windows'", ('key "cache_directory" in [worker]', "cannot be chosen")),
            ("worker", r"readable = 'C:\windows'", ('key "readable" in [worker]', "cannot be chosen on Windows")),
            ("broker", "socket_group = 'Users'", ('key "socket_group" in [broker]', "cannot be chosen on Windows")),
            ("pool", "enabled = true", ('key "enabled" in [pool] is true', "each session has a worker of its own")),
            ("scheduling", "turns = 'on'", ('key "turns" in [scheduling] is "on"', "on Windows sessions take no turns")),
            ("scheduling", "shares = 'on'", ('key "shares" in [scheduling] is "on"', "on Windows sessions take no turns")),
            ("control_groups", "enabled = 'required'", ("in [control_groups]", "Windows has no control groups")),
            ("[network]", "client_crl = 'C:\\crl.pem'\nlisten = '127.0.0.1:1'",
             ('key "client_crl" in [[network]]', "on Windows no revocation lists are read")),
            ("access", "users = 'Users'", ('key "users" in [access]', "no user of this machine", "groups"))):
        file.write_text(f"[{section}]\n{line}\n")
        code, output = wine.run([BIN / "sluiced.exe", "--check-config", name], seconds=60)
        good = code == 2 and all(word in output for word in (*words, "keys.toml:2:"))
        check(f"keys: {line.splitlines()[0]} is refused", good and "a user of this machine" not in output.replace("no user", ""),
              (code, output))
    code, output = ctl(wine, "install", "--manual", "--no-driver", "--config", name)
    check("keys: by install, too", code == 1 and "keys.toml:2:" in output, (code, output))
    for line, words in (("share = 200", "has share 200, allowed is"), ("pool = 'on'", 'has pool "on", allowed is'),
                        ("interactive_percent = 20", "has interactive_percent 20, allowed is"),
                        ("group = 'Users'", "has a group; allowed is")):
        file.write_text(f"[[listener]]\ntenant = 't'\n{line}\n")
        code, output = wine.run([BIN / "sluiced.exe", "--check-config", name], seconds=60)
        good = code == 2 and "keys.toml:1:" in output and f'tenant "t" {words}' in output and "on Windows" in output
        check(f"keys: {line} of a listener is refused", good, (code, output))
    file.write_text("[worker]\nuser = ''\ncache_directory = ''\nreadable = []\nnamespaces = true\nprivate_root = true\n"
                    "[access]\nusers = ['SYSTEM']\n[pool]\nenabled = false\n[scheduling]\nturns = 'off'\nshares = 'auto'\n"
                    "[limits]\nkernel_time_ms = 5000\n[[listener]]\ntenant = 't'\nshare = 100\npool = 'off'\n")
    code, output = wine.run([BIN / "sluiced.exe", "--check-config", name], seconds=60)
    check("keys: defaults, and a user of the system's, are taken", code == 0, (code, output))
    no_case(wine, file)
    code, output = wine.run([BIN / "sluiced.exe", "--console", "--socket", PIPE, "--worker-user", "root"], seconds=60)
    check("keys: nor by a flag", code == 2 and "--worker-user" in output and "Windows" in output, (code, output))


def install(wine):
    """What install refuses, what it says, and whom it leaves the configuration to."""
    def try_install(file, *flags):
        return ctl(wine, "install", "--manual", "--no-driver", "--config", wine_module.windows_path(file), *flags)

    file = wine.directory / "install.toml"
    code, output = try_install(file)
    check("install: a file that is not there", code == 1 and "install.toml" in output, (code, output))
    file.write_text("[broker]\nsockets = 1\n")
    code, answer = try_install(file, "--json")
    check("install: a wrong key", code == 1 and '"sockets"' in str(answer["error"]), (code, answer))
    file.write_text("")
    file.chmod(0o666)
    code, output = try_install(file)
    check("install: a file that everybody may change", code == 1 and "may be changed by" in output, (code, output))
    code, output = wine.run([BIN / "sluiced.exe", "--check-config", wine_module.windows_path(file)], seconds=60)
    check("install: as the service itself says", code == 2 and "may be changed by" in output, (code, output))
    file.chmod(0o644)
    code, output = wine.run([BIN / "sluiced.exe", "--check-config", "nul"], seconds=60)
    check("install: a device is no file", code == 2 and "nul is a device, not a file" in output, (code, output))
    folder = wine_module.windows_path(file.parent) + "\\"
    code, output = ctl(wine, "install", "--manual", "--no-driver", "--config", folder)
    check("install: a folder, with a backslash at its end", code == 1 and folder in output, (code, output))
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        code, output = try_install(file)
        check("install: a file of somebody's", code == 1 and "belongs to" in output, (code, output))
        os.chown(file, 0, -1)
    programs(wine, file)
    incomplete(wine, file)
    no_programs(wine, file)
    expanded(wine, file)
    long_path(wine, file)
    code, output = wine.run(["sc", "query", "Sluice"], seconds=30)
    check("install: what is refused makes no service", code != 0 and "STATE" not in output, (code, output))
    foreign_name(wine, file)
    without_loader(wine)
    kept(wine)
    two_folders(wine, file)
    several_at_once(wine)
    named = wine.directory / "Gerät Δ.toml"  # Not in one code page.
    named.write_text("")
    code, answer = try_install(named, "--json")
    check("install: one JSON document", code == 0 and answer["done"] is True and named.name in answer["steps"][0],
          (code, answer))
    folder = in_c(wine, "ProgramData", "Sluice")
    check("install: the configuration's folder", folder.is_dir(), folder)
    wine.run(["sc", "start", "Sluice"], seconds=60)
    check("install: the service takes a file of any name", answered(wine, None) is not None)
    code, output = ctl(wine, "uninstall")
    check("install: uninstall says what it did", code == 0 and "service removed: Sluice" in output, output)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
        code, output = try_install(named)
        check("install: a folder of somebody's", code == 1 and "belongs to" in output, (code, output))


def without_loader(wine):
    """A machine without OpenCL.dll is told where there is one."""
    loader = in_c(wine, "windows", "system32", "opencl.dll")
    aside = loader.with_suffix(".aside")
    loader.rename(aside)
    try:
        code, output = ctl(wine, "install", "--no-service")
    finally:
        aside.rename(loader)
    check("install: a machine without OpenCL.dll", code == 0 and "no loader for OpenCL" in output, (code, output))
    code, output = ctl(wine, "uninstall", "--no-service")
    check("install: its driver is taken away", code == 0 and "driver removed" in output, (code, output))


def kept(wine):
    """--keep leaves the configuration and the start of a service that is there, and is none's without one."""
    file = wine.directory / "kept.toml"
    file.write_text("")
    name = wine_module.windows_path(file)
    ctl(wine, "install", "--no-driver", "--manual", "--config", name)
    code, output = ctl(wine, "install", "--no-driver", "--keep")
    check("install: --keep", code == 0 and name in output and "started by hand" in output and "instead of" not in output,
          (code, output))
    ctl(wine, "uninstall", "--no-driver")
    code, output = ctl(wine, "install", "--no-driver", "--keep")
    check("install: --keep without a service", code == 0 and "--config" not in output and "started with Windows" in output,
          (code, output))
    ctl(wine, "uninstall", "--no-driver")


def main():
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows service: {reason}")
        return 0
    with wine_module.Wine() as wine:
        wine.environment.update(WINEDLLOVERRIDES=OPENCL, LC_ALL="C.UTF-8")  # By which names come to Wine.
        keep_one_service_manager(wine)
        wine.programs = unpack(wine)
        imports()
        for part in (unit_tests, texts, console, refused, service, broken, killed, in_use, fixed_keys, install):
            if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
                part(wine)
    print(f"{len(FAILURES)} failed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
