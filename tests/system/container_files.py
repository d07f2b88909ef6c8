#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What sluicectl writes for containers, without a container: export-client and cdi, and their refusals.

Usage: container_files.py
"""
import json
import os
import pathlib
import shlex
import shutil
import socket
import stat
import subprocess
import tempfile

import harness

report = harness.Report("container_files")
CLIENT = ["libsluice_icd.so", "libsluice.so.0", "sluice/libsluice_remote.so", "sluice/sluice-network-helper",
          "sluice/sluice-resource-helper"]
OK, FAILED, USAGE = 0, 1, 2


def sluicectl(*arguments, program=None):
    """Exit code, and all that was printed. With a umask that would hide the files from others."""
    run = subprocess.run([str(program or harness.built("sluicectl")), *map(str, arguments)], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
                         preexec_fn=lambda: os.umask(0o077))
    return run.returncode, run.stdout.decode()


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refused(name, words, *arguments, code=FAILED):
    got, text = sluicectl(*arguments)
    report.check(got == code and all(word in text for word in words), name, f"exit {got}: {text}")


def check_export(root):
    folder = root / "new" / "client"
    code, text = sluicectl("export-client", folder, "--json")
    answer = json.loads(text) if code == OK else {}
    report.check(files_of(folder) == sorted([*CLIENT, "sluice.icd"]), "an export is whole", text)
    report.check((folder / "sluice.icd").read_text() == "/usr/lib/sluice-client/libsluice_icd.so\n",
                 "its .icd file names the driver's place in a container")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    report.check(modes == {0o755, 0o644}, "everybody can read it", [oct(mode) for mode in modes])
    beside = not answer.get("self_contained")
    report.check(bool(answer.get("glibc")) and beside == any("needs" in text for text in answer["warnings"]),
                 "libraries that need more than glibc are warned of", answer)
    # In a /run of its own: the next step names the folder of the service.
    operators = ("mount -t tmpfs none /run && mkdir -p /run/sluice/clients && exec python3 -c 'import socket, subprocess, "
                 "sys; s = socket.socket(socket.AF_UNIX); s.bind(\"/run/sluice/clients/admin.sock\"); "
                 "sys.exit(subprocess.call(sys.argv[1:]))' \"$@\"")
    code, text = sluicectl("--mount", "sh", "-c", operators, "sh", harness.built("sluicectl"), "export-client",
                           root / "warned", program="unshare")
    report.check(code == OK and "clients/admin.sock: root in a container" in text and "administers the daemon" in text,
                 "an admin socket in the folder that containers are to mount is warned of", text)
    # Mounted somewhere, it is replaced file by file.
    (folder / "sluice" / "sluice-network-helper").write_text("old")
    code, text = sluicectl("export-client", folder)
    report.check(code == OK and (folder / "sluice" / "sluice-network-helper").stat().st_size > 1000,
                 "an earlier export is written over", text)
    (folder / "notes.txt").write_text("mine")
    refused("a folder with other things is left alone", ["notes.txt", "empty or new"], "export-client", folder)
    (folder / "notes.txt").unlink()
    refused("a folder without a driver is no source", ["libsluice_icd.so", "--from"], "export-client", root / "x",
            "--from", root)
    (root / "broken").mkdir()
    (root / "broken" / "libsluice_icd.so").write_bytes((folder / "libsluice_icd.so").read_bytes()[:5000])
    refused("a driver that is cut off is refused", ["libsluice_icd.so", "damaged"], "export-client", root / "x",
            "--from", root / "broken")
    code, text = sluicectl("export-client", root / "box", "--place", "/run/host/client")
    report.check((root / "box" / "sluice.icd").read_text() == "/run/host/client/libsluice_icd.so\n",
                 "--place says where the folder will lie", text)
    check_places(root)
    check_copyright(root, folder)
    check_links(root)
    return folder


# What an .icd file cannot name is refused where it is said, and nothing is written.
def check_places(root):
    for name, place, words in (("a relative --place", "rel/path", ["--place", "absolute"]),
                               ("a --place of two lines", "/a\nb", ["--place", "control character"])):
        refused(name, words, "export-client", root / "place", "--place", place, code=USAGE)
    report.check(not (root / "place").exists(), "and nothing is written for it")
    code, text = sluicectl("export-client", root / "place", "--place", "/a b//c/")
    report.check(code == OK and (root / "place/sluice.icd").read_text() == "/a b/c/libsluice_icd.so\n",
                 "a --place is written as it is meant", text)
    report.check("OCL_ICD_VENDORS='/a b/c/'," in text, "and printed for a shell", text)
    spaced = root / "it's a client"
    code, text = sluicectl("export-client", spaced)
    line = next((line for line in text.splitlines() if line.startswith("podman run")), "")
    report.check(line and f"{spaced}:/usr/lib/sluice-client:ro" in shlex.split(line),
                 "the line for podman is one that a shell reads", text)


# The licences of what is linked in go where the client goes.
def check_copyright(root, folder):
    source = root / "with-copyright"
    shutil.copytree(folder, source)
    (source / "notes.txt").unlink(missing_ok=True)
    (source / "copyright.txt").write_text("zlib and others\n")
    target = root / "copyright-copied"
    for time in ("an export takes", "a second one takes"):
        code, text = sluicectl("export-client", target, "--from", source)
        report.check(code == OK and (target / "copyright.txt").read_text() == "zlib and others\n",
                     f"{time} the licences along", text)


# Nothing is written through somebody's link.
def check_links(root):
    elsewhere, folder = root / "elsewhere", root / "linked"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "sluice").symlink_to(elsewhere)
    refused("a link in the folder is not followed", [f"{folder} has sluice, a link"], "export-client", folder)
    report.check(not list(elsewhere.iterdir()), "and nothing is written behind it")


def check_flatpak(root):
    folder = root / "flatpak"
    code, text = sluicectl("export-client", "--flatpak", folder)
    wanted = sorted([*(f"lib/{name}" for name in CLIENT), "OpenCL/vendors/sluice.icd", "metadata"])
    report.check(code == OK and files_of(folder) == wanted, "Flatpak's layout", f"{files_of(folder)} {text}")
    report.check((folder / "OpenCL/vendors/sluice.icd").read_text() == "libsluice_icd.so\n",
                 "its .icd file leaves the place to the runtime")
    plain = root / "plain"
    sluicectl("export-client", plain)
    for name, made, flags in (("a plain export", plain, ["--flatpak"]), ("one for Flatpak", folder, [])):
        before = files_of(made)
        how = "without --flatpak" if flags else "with --flatpak"
        refused(f"{name} is not mixed with the other layout", ["earlier export", how, "another folder"],
                "export-client", *flags, made)
        report.check(files_of(made) == before, f"{name} stays as it was")
    (plain / "notes.txt").write_text("mine")
    refused("another's file is named first", ["has notes.txt"], "export-client", "--flatpak", plain)
    refused("Flatpak decides where its extension lies", ["--place"], "export-client", root / "y", "--flatpak",
            "--place", "/x", code=USAGE)


# What an installation has in PREFIX/lib/sluice-client is what it gives away.
def check_installed(root, client):
    prefix = root / "prefix"
    shutil.copytree(client, prefix / "lib" / "sluice-client")
    (prefix / "bin").mkdir()
    program = prefix / "bin" / "sluicectl"
    shutil.copy(harness.built("sluicectl"), program)
    code, text = sluicectl("export-client", root / "of-prefix", "--json", program=program)
    report.check(code == OK and json.loads(text)["from"] == str(prefix / "lib" / "sluice-client"),
                 "the installed client folder is exported", text)
    code, text = sluicectl("cdi", "generate", program=program)
    mounted = [mount["hostPath"] for mount in json.loads(text)["containerEdits"]["mounts"]] if code == OK else text
    report.check(mounted and mounted[0] == str(prefix / "lib" / "sluice-client"), "and mounted", mounted)


def check_cdi(root, client):
    sockets, folder = root / "clients", root / "cdi"
    sockets.mkdir()
    output = folder / "sluice.json"
    code, text = sluicectl("cdi", "generate", "--client", client, "--socket-folder", sockets, "--output", output)
    report.check(code == OK and "no clients' socket" in text, "generate warns of a folder without the clients' socket", text)
    code, text = sluicectl("cdi", "validate", output)
    report.check(code == OK and "warning" in text and "no clients' socket" in text, "and so does validate", text)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as clients:
        clients.bind(str(sockets / "broker.sock"))
    code, text = sluicectl("cdi", "generate", "--client", client, "--socket-folder", sockets, "--output", output)
    document = json.loads(output.read_text()) if code == OK else {}
    report.check(code == OK and stat.S_IMODE(output.stat().st_mode) == 0o644, "a CDI file that everybody can read", text)
    edits = [document["containerEdits"], *(device["containerEdits"] for device in document["devices"])]
    report.check(document["cdiVersion"] == "0.5.0" and all(list(one) == ["mounts"] and one["mounts"] for one in edits),
                 "it has mounts and nothing else", document)
    code, text = sluicectl("cdi", "validate", "--folder", folder)
    report.check(code == OK and "error" not in text, "what was generated is valid", text)
    code, text = sluicectl("cdi", "list", "--folder", folder, "--json")
    report.check(code == OK and json.loads(text)["devices"] == [{"device": "sluice.dev/gpu=all", "file": str(output)}],
                 "list names the device and its file", text)
    # The package's own file is the same, for its folders.
    static = (harness.ROOT / "deploy/linux/cdi.json.in").read_text()
    for name, path in (("@SLUICE_CLIENT@", client), ("/run/sluice/clients", sockets)):
        static = static.replace(f'"hostPath": "{name}', f'"hostPath": "{path}')
    report.check(static == output.read_text(), "the package's CDI file is what generate writes, to the byte", static)
    check_conflicts(client, sockets, folder, output)
    check_refusals(root, client, sockets, folder)
    check_findings(output, document, sockets)


# podman refuses a device that two files of one folder have; of another folder it takes the later one.
def check_conflicts(client, sockets, folder, output):
    second = folder / "zz.json"
    code, text = sluicectl("cdi", "generate", "--client", client, "--socket-folder", sockets, "--output", second)
    report.check(code == OK and str(output) in text and "sluice.dev/gpu=all" in text, "generate warns of a second file", text)
    code, text = sluicectl("cdi", "validate", "--folder", folder)
    lines = [line for line in text.splitlines() if "error" in line]
    report.check(code == FAILED and len(lines) == 2 and all(str(output) in line and str(second) in line for line in lines),
                 "validate names both files of one device", text)
    other = folder.parent / "cdi-later"
    other.mkdir()
    second.rename(other / "zz.json")
    code, text = sluicectl("cdi", "validate", "--folder", folder, "--folder", other)
    report.check(code == OK, "a second folder may have it again", text)
    code, text = sluicectl("cdi", "generate", "--client", client, "--socket-folder", sockets, "--output", output)
    report.check(code == OK and "warning" not in text, "its own file may be written again", text)


def check_refusals(root, client, sockets, folder):
    refused("a name that no runtime reads", [".json"], "cdi", "generate", "--client", client, "--output", root / "cdi.txt")
    refused("a client that is not there", ["export-client"], "cdi", "generate", "--client", root / "nothing")
    refused("a client for another place", ["does not name"], "cdi", "generate", "--client", root / "box")
    (sockets / "admin.sock").touch()
    refused("generate refuses a folder with an admin socket", ["admin.sock", "administers"], "cdi", "generate",
            "--client", client, "--socket-folder", sockets)
    refused("validate finds one", ["admin.sock", "devices[0].containerEdits.mounts[0].hostPath"], "cdi", "validate",
            "--folder", folder)
    (sockets / "admin.sock").unlink()
    (sockets / "below").mkdir()
    (sockets / "below/monitor.sock").touch()
    refused("generate refuses a folder above one", ["below/monitor.sock", "administers"], "cdi", "generate",
            "--client", client, "--socket-folder", sockets)
    refused("validate finds that one too", ["below/monitor.sock"], "cdi", "validate", "--folder", folder)
    shutil.rmtree(sockets / "below")
    for above in ("/", "/run"):
        refused(f"generate refuses {above}, where a daemon's may come", ["/run/sluice-admin/admin.sock"], "cdi",
                "generate", "--client", client, "--socket-folder", above)
    # As in /run/sluice, where clients of old look.
    above = root / "above"
    above.mkdir()
    (above / "broker.sock").symlink_to("../clients/broker.sock")
    refused("generate refuses the folder of a link to the socket", ["is a link", str(sockets)], "cdi", "generate",
            "--client", client, "--socket-folder", above)
    (root / "empty").mkdir()
    refused("no file to list", ["cdi generate"], "cdi", "list", "--folder", root / "empty")
    refused("no file to validate", ["cdi generate"], "cdi", "validate", "--folder", root / "empty")
    for command in ("list", "validate"):
        refused(f"no folder to {command}", ["--folder", str(root / "nothing"), "No such file"], "cdi", command, "--folder",
                root / "nothing")
    for kind in ("foo", "sluice.dev/", "/gpu", "7.dev/gpu", "sluice.dev/g pu", "a/b/c"):
        refused(f"a kind that no runtime takes: {kind}", ["--kind", "DOMAIN/CLASS"], "cdi", "generate", "--client", client,
                "--kind", kind, code=USAGE)
    refused("no such file", ["No such file"], "cdi", "validate", root / "nothing.json")


# Each mistake is named with file and field.
def check_findings(output, document, sockets):
    text = json.dumps(document)
    empty = dict(document, devices=[{"name": "all", "containerEdits": {}}])
    devices = json.dumps(document["devices"])
    cases = [
        ("a device without edits", json.dumps(empty), "devices[0].containerEdits: error", "empty"),
        ("a field that there is not", text.replace("hostPath", "hostpath"), "mounts[0].hostpath: error", "no such field"),
        ("a version that there is not", text.replace("0.5.0", "0.5.1"), "cdiVersion: error", "0.5.1"),
        ("a version that podman 4.3 refuses", text.replace("0.5.0", "0.6.0"), "cdiVersion: warning", "podman 4.3"),
        ("a kind without a class", text.replace("sluice.dev/gpu", "sluice"), "kind: error", "DOMAIN/CLASS"),
        ("a path that is relative", text.replace(str(sockets), "clients"), "hostPath: error", "begin with /"),
        ("a path that is not there", text.replace(str(sockets), "/nonexistent"), "hostPath: error", "No such file"),
        ("no .icd file for the container", text.replace("sluice.icd", "sluice.txt"), "containerEdits.mounts: error", ".icd"),
        ("a mount that can be written", text.replace('"ro", ', ""), "options: warning", '"ro"'),
        ("a hook", text.replace('"containerEdits": {"mounts"', '"containerEdits": {"hooks": [], "mounts"'),
         "hooks: warning", "needs none"),
        ("a field newer than the version", text.replace('"containerEdits": {"mounts"',
                                                        '"containerEdits": {"additionalGids": [5], "mounts"'),
         "additionalGids: error", "0.7.0"),
        ("two devices of one name", text.replace(devices, devices[:-1] + ", " + devices[1:]), "devices[1].name: error", "twice"),
        ("a text that is cut off", text[:-5], "error: no JSON", "line 1"),
        ("a list instead of an object", "[]", "error: must be an object", "array"),
    ]
    for name, changed, field, words in cases:
        output.write_text(changed)
        code, found = sluicectl("cdi", "validate", output)
        line = next((line for line in found.splitlines() if line.startswith(str(output)) and field in line and words in line), "")
        report.check(line and code == (FAILED if "error" in field else OK), f"validate names {name}", line or found)
    output.write_text(text)
    output.chmod(0o600)
    code, found = sluicectl("cdi", "validate", output)
    report.check(code == FAILED and "0644" in found, "validate names a file that others cannot read", found)


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    root.chmod(0o755)
    try:
        client = check_export(root)
        check_flatpak(root)
        check_installed(root, client)
        check_cdi(root, client)
    finally:
        shutil.rmtree(root)


main()
report.exit()
