#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""sluicectl in front of a real daemon: doctor names each induced fault, devices shows what there is.

Usage: failure_doctor.py ring|network
"""
import json
import pathlib
import shutil
import subprocess
import tempfile

import harness

KIND = harness.kind_argument()
HEALTHY, FAULTY, NO_DAEMON = 0, 1, 3

report = harness.Report(f"failure_doctor {KIND}")
harness.let_others_run()


def sluicectl(env, *arguments):
    """The exit code and what was printed as JSON."""
    run = subprocess.run([str(harness.built("sluicectl")), *arguments, "--json"], env=env,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         timeout=60, check=False)
    try:
        return run.returncode, json.loads(run.stdout)
    except ValueError:
        return run.returncode, {"not JSON": run.stdout.decode()}


def failed_steps(answer):
    return [step["step"] for step in answer.get("steps", []) if step["result"] == "failed"]


def expect_fault(env, what, step):
    code, answer = sluicectl(env, "doctor")
    found = failed_steps(answer)
    advised = all(s["advice"] for s in answer.get("steps", []) if s["result"] == "failed")
    report.check(code == FAULTY and step in found and advised, f"doctor finds {what}", (code, answer))
    return answer


def expect_helper_beside_another_grpc(env):
    """A program that has the other gRPC uses the network all the same, through the helper process."""
    libraries = sorted(pathlib.Path("/usr/lib").glob("*/libgrpc++_unsecure.so.*"))
    run = subprocess.run([str(harness.built("vector_add"))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=60, check=False,
                         env=dict(env, LD_PRELOAD=str(libraries[0]), SLUICE_LOG="info"))
    text = run.stdout.decode()
    report.check(run.returncode == 0 and "has a gRPC of its own" in text and "every element right" in text,
                 "a program with another gRPC is told so and works", text)


# SIGHUP's new list of devices reaches whoever asks next, over the network too.
def check_reload(daemon, env):
    text = daemon.config.read_text()
    for what, allow, good in (("takes devices away", "no such device*", lambda n: n == []),
                              ("gives them back", "*", lambda n: n != [])):
        daemon.config.write_text(f'{text}[devices]\nallow = "{allow}"\n')
        daemon.process.send_signal(harness.signal.SIGHUP)
        seen = []

        def changed():
            seen[:] = [d["name"] for p in sluicectl(env, "devices")[1].get("platforms", []) for d in p["devices"]]
            return good(seen)
        report.check(harness.wait_until(changed, 20, pause=0.1), f"a reload {what}", seen)


def check_token_advice():
    """A daemon that wants a token is not a matter of firewalls."""
    daemon = harness.Daemon(KIND)
    tokens = daemon.directory / "tokens"
    tokens.write_text("0123456789abcdef" * 4 + "\n")
    daemon.config.write_text(daemon.config.read_text() + f'token_file = "{tokens}"\n')
    with daemon:
        code, answer = sluicectl(daemon.environment(), "doctor")
        advice = [step["advice"] for step in answer.get("steps", []) if step["step"] == "daemon on the network"]
        report.check(code == FAULTY and len(advice) == 1 and "SLUICE_TOKEN_FILE" in advice[0]
                     and "firewall" not in advice[0], "doctor advises on a missing token", (code, answer))


def check_refused_session():
    """Devices are listed to who is refused a session: that, and the driver's word for it, is told."""
    with harness.Daemon(KIND, limits="max_sessions = 1") as daemon:
        first = harness.Application(daemon, "limits", "context")
        held = first.wait_for("READY", 30)
        answer = expect_fault(daemon.environment(), "a session that is refused", "application's context")
        first.end(30)
        found = [step["found"] for step in answer.get("steps", []) if step["step"] == "application's context"]
        report.check(held and len(found) == 1 and "on Sluice (" in found[0] and "max_sessions" in found[0],
                     "doctor tells what the driver says of a session", found)

        def healthy():  # The broker hears of a worker's end a moment after that.
            return sluicectl(daemon.environment(), "doctor")[0] == HEALTHY
        report.check(harness.wait_until(healthy, 10), "and finds nothing wrong when there is room")


def check_permission():
    """Who may not open the socket, or is not among the daemon's users, is told where that is set."""
    nobody = harness.NOBODY
    program = str(harness.built("sluicectl"))
    others = {"user": nobody, "group": nobody, "extra_groups": []}
    if harness.os.geteuid() != 0:
        print("SKIP failure_doctor: permission: only root can become another user")
        return
    for what, add in (("a socket without permission", '[broker]\nsocket_mode = "0600"\n'),
                      ("a user who is not allowed", '[access]\nusers = ["root"]\n')):
        daemon = harness.Daemon(KIND)
        text = daemon.config.read_text()
        daemon.config.write_text(text.replace("[broker]\n", add, 1) if "[broker]" in add else text + add)
        with daemon:
            run = subprocess.run([program, "doctor", "--json"], env=daemon.environment(), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False, **others)
            try:
                steps = json.loads(run.stdout).get("steps", [])
            except ValueError:
                steps = []
            found = [step for step in steps if step["step"] == "daemon's socket"]
            report.check(run.returncode == FAULTY and len(found) == 1 and found[0]["result"] == "failed"
                         and f"user {nobody}" in found[0]["advice"] and "socket_mode" in found[0]["advice"]
                         and "[access]" in found[0]["advice"], f"doctor finds {what}", found or run.stdout.decode())


def check_loader(env, folder):
    """A library that is no loader in the place of one: the step says so, and the ones behind it need none."""
    bad = folder / "no_loader"
    bad.mkdir()
    (bad / "libOpenCL.so.1").write_text("no library\n")
    answer = expect_fault(dict(env, LD_LIBRARY_PATH=str(bad)), "a loader that does not load", "OpenCL loader")
    results = {step["step"]: step for step in answer.get("steps", [])}
    report.check("apt-get install" in results["OpenCL loader"]["advice"]
                 and results["application's view"]["result"] == "skipped" and results["devices"]["result"] == "ok",
                 "doctor says what to install, and what it could not look at", answer)
    # One that finds no .icd file, as CUDA's does behind a folder's name without a slash at its end.
    empty = dict(env, LD_LIBRARY_PATH=str(harness.built("empty_loader/libOpenCL.so.1").parent))
    for end, advised in (("", True), ("/", False)):
        answer = expect_fault(dict(empty, OCL_ICD_VENDORS=env["OCL_ICD_VENDORS"].rstrip("/") + end),
                              f"a loader that finds no .icd file behind a name that ends with '{end}'", "application's view")
        advice = [step["advice"] for step in answer.get("steps", []) if step["step"] == "application's view"]
        report.check(len(advice) == 1 and ("OCL_ICD_VENDORS with a slash" in advice[0]) == advised,
                     f"doctor advises to end it with a slash: {advised}", advice)
    # None at all: a root without it, where this machine can make one.
    loaders = sorted(pathlib.Path("/usr/lib").glob("*/libOpenCL.so*")) + sorted(pathlib.Path("/usr/lib").glob(
        "libOpenCL.so*"))
    hide = [word for path in {path.resolve() for path in loaders} for word in ("--ro-bind", "/dev/null", str(path))]
    bwrap = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", *hide]
    try:
        possible = subprocess.run([*bwrap, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                                  check=False).returncode == 0
    except OSError:
        possible = False
    if not possible:
        print("SKIP failure_doctor: no loader at all: bubblewrap does not run here")
        return
    run = subprocess.run([*bwrap, str(harness.built("sluicectl")), "doctor"], env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    text = run.stdout.decode()
    report.check(run.returncode == FAULTY and "failed   OpenCL loader" in text and "ocl-icd-libopencl1" in text,
                 "doctor finds that there is no loader", text)


def check_cache_out_of_reach():
    """Drivers that find no device for want of a cache are not missing: what their user cannot use is named."""
    daemon = harness.Daemon(KIND)
    file = daemon.directory / "file"
    file.write_text("no folder\n")
    daemon.start_with({"POCL_CACHE_DIR": f"{file}/cache"})
    try:
        code, answer = sluicectl(daemon.environment(), "doctor")
        devices = [step for step in answer.get("steps", []) if step["step"] == "devices"]
        text = json.dumps(devices) + daemon.log.read_text()
        report.check(code == FAULTY and len(devices) == 1 and text.count(f"Not a directory at {file}") >= 2
                     and text.count(f"POCL_CACHE_DIR={file}/cache") >= 2, "a cache that nobody can use is named",
                     (code, answer, daemon.log.read_text()))
    finally:
        daemon.stop()


def check_worker_that_cannot_start():
    """Devices that are gone since the daemon has looked: the session opens, and its worker says why it ends."""
    daemon = harness.Daemon(KIND)
    folder = daemon.directory / "gone"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    daemon.start_with({"POCL_CACHE_DIR": f"{folder}/cache"})
    try:
        shutil.rmtree(folder)
        folder.write_text("no folder\n")
        code, answer = sluicectl(daemon.environment(), "doctor")
        found = [step["found"] for step in answer.get("steps", []) if step["step"] == "session"]
        report.check(code == FAULTY and len(found) == 1 and "cannot start" in found[0]
                     and f"Not a directory at {folder}" in found[0], "doctor tells what a session's worker says",
                     (code, answer, daemon.log.read_text()))
    finally:
        daemon.stop()


def step_of(answer, name):
    return next((step for step in answer.get("steps", []) if step["step"] == name), {"result": "", "found": "", "advice": ""})


def check_other_drivers(env):
    """Another driver that crashes or hangs beside Sluice's is told apart from Sluice."""
    for fault, words in (("crash", "a driver crashes: "), ("hang", "a driver hangs")):
        with tempfile.TemporaryDirectory(prefix="sluice-test-") as folder:
            vendors = pathlib.Path(folder)
            shutil.copy(pathlib.Path(env["OCL_ICD_VENDORS"]) / "sluice.icd", vendors)
            (vendors / "faulty.icd").write_text(f"{harness.built(f'libfaulty_driver_{fault}.so')}\n")
            code, answer = sluicectl(dict(env, OCL_ICD_VENDORS=folder), "doctor", "--timeout-ms", "1500")
        view = step_of(answer, "application's view")
        report.check(code == FAULTY and words in view["found"] and "sluicectl run" in view["advice"]
                     and failed_steps(answer) == ["application's view"], f"doctor finds another driver's {fault}",
                     (code, answer))


def check_daemons_driver():
    """So is a driver that crashes or hangs while the daemon asks it for devices."""
    for fault, words in (("crash", "signal 11"), ("hang", "a driver hangs")):
        daemon = harness.Daemon(KIND)
        text = daemon.config.read_text()
        daemon.config.write_text(text.replace("[broker]\n", "[broker]\nprobe_timeout_ms = 1000\n", 1))
        with tempfile.TemporaryDirectory(prefix="sluice-test-") as folder:
            harness.os.chmod(folder, 0o755)
            pathlib.Path(folder, "faulty.icd").write_text(f"{harness.built(f'libfaulty_driver_{fault}.so')}\n")
            with daemon.start_with({"OCL_ICD_VENDORS": folder}):
                code, answer = sluicectl(daemon.environment(), "doctor")
        devices = step_of(answer, "devices")
        report.check(code == FAULTY and devices["result"] == "failed" and words in devices["found"]
                     and "SIGHUP" in devices["advice"], f"doctor tells of a {fault} in the daemon's driver",
                     (code, answer))
        session = step_of(answer, "session")
        report.check(session["result"] == "failed" and "`devices`" in session["advice"],
                     "and advises to mend that, not the limits of sessions", session)


def check_parts(env):
    """An installation without its network library: neither sluicectl's nor the driver's is a matter of firewalls."""
    with tempfile.TemporaryDirectory(prefix="sluice-test-") as folder:
        tree = pathlib.Path(folder)
        for part, place in (("sluicectl", "bin"), ("libsluice_icd.so", "lib")):
            (tree / place).mkdir()
            shutil.copy(harness.built(part), tree / place)
        run = subprocess.run([str(tree / "bin/sluicectl"), "doctor", "--json"], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        network = step_of(json.loads(run.stdout), "daemon on the network")
        report.check(run.returncode == FAULTY and "libsluice_remote.so" in network["found"]
                     and "libsluice_remote.so" in network["advice"] and "firewall" not in network["advice"],
                     "doctor finds that its network library is missing", run.stdout.decode())
        (tree / "sluice.icd").write_text(f"{tree}/lib/libsluice_icd.so\n")
        code, answer = sluicectl(dict(env, OCL_ICD_VENDORS=folder), "doctor")
        view = step_of(answer, "application's view")
        report.check(code == FAULTY and failed_steps(answer) == ["application's view"]
                     and "libsluice_remote.so" in view["found"], "doctor tells that the driver's is missing",
                     (code, answer))


def main():
    daemon = harness.Daemon(KIND)
    daemon.start()
    env = daemon.environment()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    try:
        code, answer = sluicectl(env, "doctor")
        report.check(code == HEALTHY and answer.get("healthy") is True, "doctor finds nothing wrong", answer)
        turns = step_of(answer, "turns")
        report.check(turns["result"] == "ok" and "cooperative" in turns["found"], "doctor says that turns are cooperative", turns)
        code, answer = sluicectl(env, "devices")
        names = [d["name"] for p in answer.get("platforms", []) for d in p["devices"]]
        report.check(code == HEALTHY and len(names) >= 1, "devices lists what the daemon offers", names)

        expect_fault(dict(env, OCL_ICD_VENDORS=str(folder)), "no .icd file", "ICD file")
        other = folder / "other.icd"
        other.write_text("libother.so\n")
        answer = expect_fault(dict(env, OCL_ICD_VENDORS=str(other)), "another driver's .icd file", "ICD file")
        advice = [step["advice"] for step in answer["steps"] if step["step"] == "ICD file"]
        report.check("names one file" in advice[0], "doctor says what to set in place of a file", advice)
        broken = folder / "broken"
        broken.mkdir()
        (broken / "sluice.icd").write_text("/nonexistent/libsluice_icd.so\n")
        expect_fault(dict(env, OCL_ICD_VENDORS=str(broken)), "a missing library", "ICD library")
        half = broken / "libsluice_icd.so"
        half.write_bytes(harness.built("libsluice_icd.so").read_bytes()[:100_000])
        (broken / "sluice.icd").write_text(f"{half}\n")
        expect_fault(dict(env, OCL_ICD_VENDORS=str(broken)), "half a library", "ICD library")
        expect_fault(dict(env, SLUICE_WORKER="1"), "the variable that hides devices", "environment")
        expect_fault(dict(env, SLUICE_ENDPOINT="nonsense"), "an endpoint that is none", "endpoint")
        answer = expect_fault(dict(env, SLUICE_ENDPOINT=f"http://127.0.0.1:7533,{daemon.endpoint()}"), "a URL in a list",
                              "endpoint")
        found = [step for step in answer.get("steps", []) if step["step"] == "endpoint"]
        report.check([step["result"] for step in found] == ["failed", "ok"] and
                     found[0]["found"].endswith("; write 127.0.0.1:7533"), "and what to write in its place", answer)
        if KIND == "ring":
            plain = folder / "plain"
            plain.write_text("no socket\n")
            for what, path in {"no socket": folder / "none.sock", "a file that is no socket": plain}.items():
                expect_fault(dict(env, SLUICE_ENDPOINT=f"unix:{path}"), what, "daemon's socket")
            check_cache_out_of_reach()
            check_worker_that_cannot_start()
            check_permission()
            check_loader(env, folder)
            check_other_drivers(env)
            check_daemons_driver()
        else:
            nobody = f"127.0.0.1:{harness.free_port()}"
            expect_fault(dict(env, SLUICE_ENDPOINT=nobody), "nobody at the address", "daemon on the network")
            authority = dict(env, SLUICE_TLS_CA="/etc/ssl/certs/ca-certificates.crt")
            expect_fault(authority, "a daemon without TLS asked with TLS", "daemon on the network")
            expect_helper_beside_another_grpc(env)
            check_token_advice()
            check_parts(env)
            code, answer = sluicectl(dict(env, SLUICE_ENDPOINT=nobody), "devices")
            report.check(code == NO_DAEMON and "error" in answer, "devices says that nobody is there", answer)
        check_reload(daemon, env)
        check_refused_session()
    finally:
        daemon.stop()
        shutil.rmtree(folder)
    report.exit()


if __name__ == "__main__":
    main()
