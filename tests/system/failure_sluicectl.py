#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""sluicectl where something is wrong: each error names what a person can change, as text and as JSON.

Usage: failure_sluicectl.py
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import failure_config
import harness

DONE, FAILED, USAGE, NO_DAEMON, NO_SESSION = 0, 1, 2, 3, 4

report = harness.Report("failure_sluicectl")


def sluicectl(env, *arguments, seconds=60, **identity):
    """(exit code, stdout, stderr)"""
    run = subprocess.run([str(harness.built("sluicectl")), *arguments], env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, check=False, **identity)
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return {"not JSON": text}


def own_environment(folder):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_TLS", "OCL_ICD"))}
    env.update(TMPDIR=str(folder))
    env.pop("SLUICE_ENDPOINT", None)
    return env


def check_lists(env, living):
    """Several endpoints: what the living ones offer, and the error of each dead one."""
    dead = ["unix:/nonexistent/one.sock", f"127.0.0.1:{harness.free_port()}"]
    several = dict(env, SLUICE_ENDPOINT=f"{dead[0]},{living},{dead[1]}")
    code, output, errors = sluicectl(several, "devices")
    report.check(code == NO_DAEMON and living in output and "compute units" in output,
                 "devices shows the living endpoint's devices, and from where", output + errors)
    report.check(all(one in errors for one in dead), "and the error of each dead one", errors)
    code, output, errors = sluicectl(several, "devices", "--json")
    answer = parsed(output)
    platforms = answer.get("platforms", [])
    report.check(code == NO_DAEMON and [p["endpoint"] for p in platforms] == [living] and platforms[0]["devices"] and
                 [e["endpoint"] for e in answer.get("errors", [])] == dead and answer.get("error"),
                 "the same as JSON", output + errors)
    # Two names that only the system knows to be one place.
    folder = pathlib.Path(env["TMPDIR"]) / "the same"
    folder.symlink_to(pathlib.Path(living.removeprefix("unix:")).parent)
    again = f"unix:{folder}/broker.sock"
    code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT=f"{living},{again},{living}"), "devices", "--json")
    report.check(code == DONE and [p["endpoint"] for p in parsed(output).get("platforms", [])] == [living, again] and
                 "error" not in parsed(output), "two living ones are no error, and each is shown once", output)


def check_private_elsewhere(env, folder):
    """A folder whose name no endpoint can have."""
    comma = folder / "a,b"
    comma.mkdir()
    code, _, errors = sluicectl(dict(env, TMPDIR=str(comma)), "run", "--private", "--", "/bin/true")
    report.check(code == 125 and "comma" in errors and "TMPDIR" in errors, "run --private below a comma", errors)


def check_ignored_children(env):
    """Who started sluicectl and sluiced ignores its children's ends; theirs are told all the same."""
    ignoring = ["env", "--ignore-signal=CHLD", str(harness.built("sluicectl")), "run", "--private", "--"]
    for command, wanted in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["true"], 0),
                            (["grep", "^SigIgn", "/proc/self/status"], 0)):
        run = subprocess.run([*ignoring, *command], env=env, stdin=subprocess.DEVNULL, timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        report.check(run.returncode == wanted and not run.stderr,
                     f"SIGCHLD ignored: `{' '.join(command)}` ends run as itself", (run.returncode, run.stderr))
    ignored = int(run.stdout.split()[1], 16)
    report.check(ignored >> (signal.SIGCHLD - 1) & 1, "SIGCHLD ignored: the program finds it so", run.stdout)


def check_passed_signals(env):
    """What is sent to sluicectl is for the program; what the program does not get is what it did not get without us."""
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMIN + 3):
        program = (f"import signal, sys; signal.signal({int(number)}, lambda *_: sys.exit(print('got') or 5)); "
                   "print('ready', flush=True); signal.pause()")
        run = subprocess.Popen([str(harness.built("sluicectl")), "run", "--", sys.executable, "-c", program], env=env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        run.stdout.readline()
        run.send_signal(number)
        output = run.communicate(timeout=60)[0].decode()
        report.check(run.returncode == 5 and output == "got\n", f"signal {int(number)} reaches the program",
                     (run.returncode, output))
    blocking = ["env", "--block-signal=USR1", str(harness.built("sluicectl")), "run", "--", "grep", "^SigBlk",
                "/proc/self/status"]
    blocked = subprocess.run(blocking, env=env, stdin=subprocess.DEVNULL, timeout=60, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=False).stdout.decode()
    report.check(int(blocked.split()[1], 16) == 1 << (signal.SIGUSR1 - 1), "the program's signal mask is its starter's",
                 blocked)


def check_private_without_home(env):
    """A user without a home has devices: the private daemon has a folder for their drivers' cache."""
    harness.let_others_run()
    lost = {key: value for key, value in env.items() if key not in ("POCL_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR")}
    ctl = str(harness.built("sluicectl"))
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    run = subprocess.run([*user, ctl, "run", "--private", "--", ctl, "devices"], env=dict(lost, HOME="/proc/nowhere"),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    report.check(run.returncode == DONE and run.stdout and not run.stderr, "run --private without a home has devices",
                 run)


def check_json_everywhere(env, living):
    env = dict(env, SLUICE_ENDPOINT=living)
    for command in ("devices", "status", "sessions", "resources", "doctor"):
        for arguments in (("--json", command), (command, "--json")):
            code, output, errors = sluicectl(env, *arguments)
            report.check(code in (DONE, FAILED) and "not JSON" not in parsed(output), " ".join(arguments),
                         output + errors)
    code, output, errors = sluicectl(env, "--endpoint", living, "--json", "devices")
    report.check(code == DONE and parsed(output).get("platforms"), "--endpoint before the command", output + errors)
    for arguments in (("--json", "run"), ("run", "--json")):
        code, output, errors = sluicectl(env, *arguments, "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
        lines = errors.splitlines() or [""]
        answer = parsed(lines[-1])
        report.check(code == 7 and output == "out\n" and lines[0] == "err" and answer.get("exit_code") == 7 and
                     answer.get("endpoint") == living, " ".join(arguments) + " tells how it ended", errors)
    code, output, errors = sluicectl(env, "run", "--json", "--", "/bin/sh", "-c", "kill -9 $$")
    answer = parsed(errors.strip())
    report.check(code == 137 and answer.get("signal") == 9, "run --json tells the signal", errors)
    code, output, errors = sluicectl(env, "run", "--json", "--", "/nonexistent")
    answer = parsed(errors.strip())
    report.check(code == 127 and "/nonexistent" in answer.get("error", "") and answer.get("exit_code") == 127,
                 "run --json tells its own errors", errors)
    code, output, errors = sluicectl(env, "--json", "run")
    report.check(code == USAGE and output == "" and parsed(errors.strip()).get("exit_code") == USAGE,
                 "run --json tells usage where it tells the rest", output + errors)
    for dead in ("unix:/nonexistent/one.sock", f"127.0.0.1:{harness.free_port()}"):
        code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT=dead), "run", "--json", "--", "/bin/true")
        answer = parsed(errors.strip())
        report.check(code == DONE and any(f"no daemon at {dead} (" in w for w in answer.get("warnings", [])),
                     f"run --json tells its warnings: {dead.split(':')[0]}", errors)
    code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT=living), "run", "--json", "--", "/bin/true")
    report.check(code == DONE and parsed(errors.strip()).get("warnings") == [], "run --json has nothing to warn of",
                 errors)
    code, output, errors = sluicectl(env, "run", "--bogus", "--", "sh")
    report.check(code == USAGE and "not expected: --bogus\n" in errors, "run names the flag that it does not know", errors)
    code, output, errors = sluicectl(env, "--json", "--version")
    report.check(code == DONE and parsed(output).get("version"), "--json --version", output)
    code, output, errors = sluicectl(env, "--json", "frobnicate")
    report.check(code == USAGE and "frobnicate" in parsed(output).get("error", ""), "--json before no command", output)


def check_kill_and_drain(env):
    """What ends sessions and the daemon tells it as JSON, and so does what it cannot do."""
    with harness.Daemon("ring") as daemon:
        env = dict(env, SLUICE_ENDPOINT=daemon.endpoint())
        application = harness.Application(daemon, "limits", "context")
        application.wait_for("READY", 60)
        listed = parsed(sluicectl(env, "sessions", "--json")[1]).get("sessions", [])
        report.check(len(listed) == 1, "sessions --json lists the one there is", listed)
        one = listed[0]["session"] if listed else "0"
        code, output, errors = sluicectl(env, "kill", "--json", "123456789abcdef0" if one[0] != "1" else "f" * 16)
        report.check(code == NO_SESSION and parsed(output).get("error"), "kill --json of none says so", output + errors)
        code, output, errors = sluicectl(env, "kill", "--json", "nonsense")
        report.check(code == USAGE and "nonsense" in parsed(output).get("error", ""), "kill --json of no id says so",
                     output + errors)
        report.check(len(daemon.workers()) == 1, "the session goes on", daemon.workers())
        code, output, errors = sluicectl(env, "kill", "--json", one)
        report.check(code == DONE and parsed(output) == {"killed": one}, "kill --json tells what it ended",
                     output + errors)
        report.check(harness.wait_until(lambda: not daemon.workers(), 20), "and it ends", daemon.workers())
        application.end(60)
        application = harness.Application(daemon, "limits", "context")
        application.wait_for("READY", 60)
        code, output, errors = sluicectl(env, "drain", "--json")
        report.check(code == DONE and parsed(output) == {"sessions_left": 1}, "drain --json tells what is left",
                     output + errors)
        report.check(daemon.process.poll() is None, "the daemon waits for it")
        application.end(60)
        report.check(harness.wait_until(lambda: daemon.process.poll() is not None, 20), "and ends with it")
        code, output, errors = sluicectl(env, "drain", "--json")
        report.check(code == NO_DAEMON and parsed(output).get("error"), "drain --json without a daemon says so",
                     output + errors)


def check_killed_session(kind):
    """What an operator says of a session that he ends comes to its application, and to every line about its end."""
    why = "it is in the way"
    with harness.Daemon(kind) as daemon:
        env = dict(daemon.environment(), SLUICE_ENDPOINT=f"unix:{daemon.socket}")
        application = harness.Application(daemon, "limits", "context")
        application.wait_for("READY", 60)
        one = parsed(sluicectl(env, "sessions", "--json")[1])["sessions"][0]["session"]
        code, output, errors = sluicectl(env, "kill", one, "--reason", why)
        told = application.wait_for("notice ", 60)
        report.check(code == DONE and told and why in application.output,
                     f"the application of a session that was killed is told why ({kind})",
                     application.output + output + errors)
        ended = f'session ended" session={one}'  # Of a gateway's lines the broker's have an escaped form.
        lines = lambda: [line for line in daemon.log.read_text().replace("\\", "").splitlines() if ended in line]
        wanted = 1 if kind == "ring" else 2  # The broker's, and the gateway's.
        harness.wait_until(lambda: len(lines()) == wanted, 20)
        gateways = [line for line in lines() if " gateway msg=" in line]
        report.check(len(lines()) == wanted and all(why in line for line in gateways),
                     f"so is who reads the log ({kind})", lines())
        application.end(60)


def check_log_lines_of_the_application(kind):
    """An application's stderr gets whole lines, whatever the operator says; SLUICE_LOG's mistakes are told."""
    with harness.Daemon(kind) as daemon:
        env = dict(daemon.environment(), SLUICE_ENDPOINT=f"unix:{daemon.socket}")
        harness.os.environ["SLUICE_LOG"] = "bogus"
        application = harness.Application(daemon, "limits", "context")
        del harness.os.environ["SLUICE_LOG"]
        application.wait_for("READY", 60)
        one = parsed(sluicectl(env, "sessions", "--json")[1])["sessions"][0]["session"]
        sluicectl(env, "kill", one, "--reason", "two\nlines, \x1b[31mred")
        application.wait_for("notice ", 60)
        application.end(60)
        errors = application.errors.decode()
        report.check("SLUICE_LOG=bogus is none of debug, info, warning, error" in errors,
                     f"an unknown level of SLUICE_LOG is told ({kind})", errors)
        report.check("two\\nlines, \\x1b[31mred" in errors and "\x1b" not in errors,
                     f"a reason is one line of the application's log and text only ({kind})", errors)


def check_tls(env, folder, port_tls, port_plain):
    tls, plain = f"127.0.0.1:{port_tls}", f"127.0.0.1:{port_plain}"
    authority = {"SLUICE_TLS_CA": f"{folder}/one.pem"}
    (folder / "text").write_text("no PEM\n")
    (folder / "nothing").write_text("")
    cases = [
        ("an authority that is not there", {"SLUICE_TLS_CA": f"{folder}/none"}, ["SLUICE_TLS_CA", "No such file"]),
        ("an empty authority", {"SLUICE_TLS_CA": f"{folder}/nothing"}, ["SLUICE_TLS_CA", "/nothing", "empty"]),
        ("a folder as authority", {"SLUICE_TLS_CA": str(folder)}, ["SLUICE_TLS_CA", str(folder), "directory"]),
        ("an authority that is no PEM", {"SLUICE_TLS_CA": f"{folder}/text"}, ["SLUICE_TLS_CA", "/text", "PEM"]),
        ("a certificate that is no PEM", dict(authority, SLUICE_TLS_CERT=f"{folder}/text",
                                              SLUICE_TLS_KEY=f"{folder}/one.key"), ["SLUICE_TLS_CERT", "/text", "PEM"]),
        ("a key that is no PEM", dict(authority, SLUICE_TLS_CERT=f"{folder}/one.pem", SLUICE_TLS_KEY=f"{folder}/text"),
         ["SLUICE_TLS_KEY", "/text", "PEM"]),
        ("another certificate's key", dict(authority, SLUICE_TLS_CERT=f"{folder}/one.pem",
                                           SLUICE_TLS_KEY=f"{folder}/two.key"), ["SLUICE_TLS_KEY", "two.key"]),
        ("a daemon of another authority", {"SLUICE_TLS_CA": f"{folder}/two.pem"}, ["SLUICE_TLS_CA"]),
        ("plaintext to a daemon with TLS", {}, ["takes TLS", "SLUICE_TLS_CA"]),
    ]
    for what, variables, parts in cases:
        code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT=tls, **variables), "devices")
        report.check(code == NO_DAEMON and all(part in errors for part in parts) and "address list" not in errors,
                     what, output + errors)
    code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT=plain, **authority), "devices")
    report.check(code == NO_DAEMON and "no TLS" in errors and "SLUICE_TLS_CA" in errors, "TLS to a daemon without it",
                 errors)
    code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT=tls, **authority), "devices")
    report.check(code == DONE and tls in output, "what is right works", output + errors)


def check_words(env):
    """What a person may write wrongly, and what is said of it."""
    for arguments, parts in (
            ((), ["a command is missing", "devices"]),
            (("--admin-socket", "/x", "status"), ["--admin-socket", "after"]),
            (("sesions",), ["did you mean sessions"]),
            (("install",), ["install exists on Windows only", "sluiced.socket"]),
            (("sesions", "--help"), ["did you mean sessions"]),
            (("run",), ["sluicectl run -- PROGRAM"]),
            (("run", "--private"), ["sluicectl run -- PROGRAM"]),
            (("run", "sh", "-c", "x"), ["-c", "after --", "sluicectl run -- PROGRAM"]),
            (("kill",), ["kill: session is required", "sluicectl kill --help"]),
            (("devices", "extra"), ["devices: ", "extra"]),
            (("devices", "--confg", "x", "y"), ["not expected: --confg x y"]),
            (("devices", "--endpoint", ""), ["--endpoint", "empty"]),
            (("--endpoint", "", "devices"), ["--endpoint", "empty"]),
            (("devices", "--endpoint", ","), ["--endpoint", "names no endpoint"]),
            (("devices", "--endpoint", "host:99999"), ["host:99999", "port"]),
            (("status", "--endpoint", f"unix:/{'x' * 200}"), ["at most 107 characters", "201"]),
            (("kill", "1", "--reason", b"f\xfcr"), ["--reason", "UTF-8"]),
            (("listener", "add", b"\xff"), ["UTF-8"]),
            (("status", "--endpoint", "unix:/a,unix:/b"), ["one daemon at a time", "unix:/a"])):
        code, output, errors = sluicectl(env, *arguments)
        report.check(code == USAGE and all(part in errors for part in parts), f"sluicectl {arguments}"[:90],
                     output + errors)
    for arguments in (("status", "--admin-socket", "/etc/passwd"), ("devices", "--endpoint", "unix:/etc/passwd")):
        for user in ({}, {"user": harness.NOBODY}) if os.geteuid() == 0 else ({},):
            code, output, errors = sluicectl(env, *arguments, **user)
            report.check(code == NO_DAEMON and "/etc/passwd" in errors and "no socket" in errors, f"{arguments} {user}",
                         output + errors)
    for arguments in ((b"\xff",), ("devices", b"\xff"), ("devices", b"--\xff"), (b"--\xff", "x")):
        code, output, errors = sluicectl(env, "--json", *arguments)
        report.check(code == USAGE and "error" in parsed(output), f"no UTF-8, as JSON: {arguments}", output + errors)
    code, output, errors = sluicectl(env, "help")
    report.check(code == DONE and "Exit codes" in output, "sluicectl help", output + errors)


def check_lost_output(env, living):
    """What was printed and could not be written is a failure, also where nothing is open to write to."""
    here = dict(env, SLUICE_ENDPOINT=living)
    for program, arguments in (("sluicectl", ["devices"]), ("sluicectl", ["status", "--json"]), ("sluicectl", ["--help"]),
                               ("sluicectl", ["--version"]), ("sluiced", ["--version"]), ("sluiced", ["--help"])):
        for what, to in (("a full disk", ">/dev/full"), ("a closed output", ">&-")):
            run = subprocess.run(["sh", "-c", f'"$0" "$@" {to}', str(harness.built(program)), *arguments], env=here,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
            errors = run.stderr.decode()
            report.check(run.returncode == FAILED and "output could" in errors, f"{program} {arguments[0]} to {what}",
                         f"{run.returncode} {errors}")
    run = subprocess.run(["sh", "-c", '"$0" run -- sh -c "echo x >&1" >&-', str(harness.built("sluicectl"))], env=here,
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
    report.check(run.returncode != 0, "run: the program finds closed what was closed", run.stderr.decode())


def icd_step(env, folder):
    code, output, _ = sluicectl(dict(env, OCL_ICD_VENDORS=str(folder)), "doctor", "--json")
    found = [step for step in parsed(output).get("steps", []) if step["step"] == "ICD file"]
    return code, (found or [{"result": "none", "found": output}])[0]


def check_icd_files(env, folder):
    """doctor looks at the .icd file as a loader does."""
    library = str(harness.built("libsluice_icd.so"))
    for what, content, part in (("a carriage return", library + "\r\n", "carriage return"),
                                ("a space", library + " \n", "space")):
        place = folder / what.replace(" ", "_")
        place.mkdir()
        (place / "sluice.icd").write_bytes(content.encode())
        code, step = icd_step(env, place)
        report.check(code == FAILED and step["result"] == "failed" and part in step["found"],
                     f"doctor finds {what} in the .icd file", step)
    place = folder / "long"
    place.mkdir()
    (place / "sluice.icd").write_bytes(library.encode() + b"x" * (1 << 20))
    code, step = icd_step(env, place)
    report.check(code == FAILED and step["result"] == "failed" and "cannot read" in step["found"],
                 "doctor reads only so much of an .icd file", step)
    place = folder / "loop"
    place.mkdir()
    (place / "sluice.icd").symlink_to(place / "sluice.icd")
    code, step = icd_step(env, place)
    report.check(code == FAILED and step["result"] == "failed" and "cannot read" in step["found"],
                 "doctor finds an .icd file that cannot be read", step)


def check_killed_run(env, folder):
    """kill -9 of sluicectl: daemon, program and folder (sluice-XXXXXX; the test's own daemon has sluice-admin) go with it."""
    for flags in (("--private",), ("--endpoint", "unix:/nonexistent")):
        run = subprocess.Popen([str(harness.built("sluicectl")), "run", *flags, "--", "/bin/sh", "-c",
                                "echo ready; exec sleep 1000"], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        ready = run.stdout.readline() == b"ready\n"
        family = harness.descendants(run.pid)
        folders = list(folder.glob("sluice-??????"))
        run.kill()
        run.wait()
        ended = harness.wait_until(lambda: not any(harness.alive(pid) for pid in family), 20)
        left = [harness.command_line(pid) for pid in family if harness.alive(pid)]
        report.check(ready and len(family) >= 2 and ended, f"a killed run {flags[0]} leaves no process", left)
        gone = harness.wait_until(lambda: not list(folder.glob("sluice-??????")), 20)
        report.check(len(folders) == 1 and gone, f"a killed run {flags[0]} leaves no folder",
                     [str(p) for p in folder.glob("sluice-??????")])
        run.stdout.close()


def check_inherited_drivers(env, folder):
    """The variables of a `sluicectl run` around this one do not take the private daemon's drivers away."""
    vendors = folder / "vendors"
    vendors.mkdir()
    library = str(harness.built("libsluice_icd.so"))
    (vendors / "sluice.icd").write_text(library + "\n")
    listing = str(harness.built("list_platforms"))
    for what, variables in (("OCL_ICD_VENDORS", {"OCL_ICD_VENDORS": str(vendors)}),
                            ("OCL_ICD_VENDORS with a file", {"OCL_ICD_VENDORS": str(vendors / "sluice.icd")}),
                            ("OCL_ICD_FILENAMES", {"OCL_ICD_FILENAMES": library})):
        code, output, errors = sluicectl(dict(env, **variables), "run", "--private", "--", listing)
        report.check(code == DONE and "platform Sluice (" in output and not errors, f"run --private under {what}",
                     output + errors)
    config = folder / "private.toml"
    config.write_text('[limits]\nmemory_bytes_per_session = "64MiB"\n')
    code, output, errors = sluicectl(env, "run", "--private", "--config", str(config), "--", listing)
    report.check(code == DONE and "platform Sluice (" in output and not errors, "run --private with a configuration",
                 output + errors)
    wrong = folder / "wrong.toml"
    wrong.write_text("[limits]\nno_such_key = 1\n")
    code, output, errors = sluicectl(dict(env, SLUICE_ENDPOINT="unix:/elsewhere"), "run", "--private", "--json",
                                     "--config", str(wrong), "--", listing)
    answer = parsed(errors.strip())
    report.check(code == 125 and "no_such_key" in answer.get("error", "") and "endpoint" not in answer,
                 "run --private whose daemon does not start has no endpoint", errors)
    empty = folder / "empty"
    empty.mkdir()
    code, output, errors = sluicectl(dict(env, OCL_ICD_VENDORS=str(empty)), "run", "--private", "--", listing)
    report.check("no OpenCL platform" in errors and f"OCL_ICD_VENDORS={empty}" in errors,
                 "a folder without drivers is named", output + errors)


def check_stopped_daemon(env, living, pid):
    """A daemon that is there and says nothing cannot be reached either."""
    os.kill(pid, signal.SIGSTOP)
    code, output, errors = sluicectl(env, "status", "--endpoint", living, "--timeout-ms", "300")
    os.kill(pid, signal.SIGCONT)
    report.check(code == NO_DAEMON and "has not answered within 300 ms" in errors, "a daemon that is stopped",
                 f"{code} {output}{errors}")


def check_limits(env):
    """Where no daemon can be started for want of descriptors, processes or threads, the limit is named."""
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    harness.let_others_run()
    for limit in ("-n 8", "-n 20", "-u 1", "-u 2", "-u 8"):
        # The system limits root's processes only where root has given up CAP_SYS_RESOURCE.
        user = nobody if limit.startswith("-u") and os.geteuid() == 0 else []
        run = subprocess.run([*user, "sh" if limit.startswith("-n") else "bash", "-c",
                              f'ulimit {limit}; exec "$0" run --private -- true', str(harness.built("sluicectl"))],
                             env=dict(env, TMPDIR="/tmp") if user else env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        text = run.stdout.decode()
        report.check(run.returncode != 0 and f"ulimit {limit[:2]}" in text, f"the limit is named: ulimit {limit}", text)


def main():
    files = failure_config.Files()
    env = own_environment(files.folder)
    failure_config.make_certificates(files.folder, "one", "two")
    tls, plain = harness.free_port(), harness.free_port()
    files.write(failure_config.network(f'listen = "127.0.0.1:{tls}"', f'certificate = "{files.folder}/one.pem"',
                                       f'key = "{files.folder}/one.key"') +
                failure_config.network(f'listen = "127.0.0.1:{plain}"'))
    with open(files.folder / "log", "wb") as log:
        daemon = subprocess.Popen([str(harness.built("sluiced")), "--config", str(files.config)], env=env,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        up = harness.wait_until(lambda: all(harness.accepts("127.0.0.1", port) for port in (tls, plain)), 20)
        report.check(up, "a daemon to ask", (files.folder / "log").read_text())
        living = f"unix:{files.clients}/broker.sock"
        check_lists(env, living)
        check_words(env)
        check_lost_output(env, living)
        check_icd_files(dict(env, SLUICE_ENDPOINT=living), files.folder)
        check_killed_run(env, files.folder)
        check_inherited_drivers(env, files.folder)
        check_limits(env)
        check_stopped_daemon(env, living, daemon.pid)
        check_private_elsewhere(env, files.folder)
        check_json_everywhere(env, living)
        check_ignored_children(env)
        check_passed_signals(dict(env, SLUICE_ENDPOINT=living))
        check_private_without_home(env)
        check_kill_and_drain(env)
        for kind in ("ring", "network"):
            check_killed_session(kind)
            check_log_lines_of_the_application(kind)
        check_tls(env, files.folder, tls, plain)
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)
        shutil.rmtree(files.folder)
    report.exit()


if __name__ == "__main__":
    main()
