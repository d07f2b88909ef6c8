#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Applications as Windows programs, and what a plug-in host does, with sluice_icd.dll under Wine and a real Linux
sluiced on the network.

SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import os
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import certificates  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve()
DRIVER = BUILD / "bin" / "sluice_icd.dll"
REPORT = harness.Report("windows clients")


class TlsDaemon(harness.Daemon):
    """Mutual TLS, with an authority of its own."""

    def _config_text(self, limits):
        certificates.make(self.directory)
        return super()._config_text(limits) + "".join(
            f'{key} = "{self.directory / name}"\n' for key, name in
            (("certificate", "localhost.pem"), ("key", "localhost.key"), ("client_ca", "ca.pem")))


def tls(wine):
    with TlsDaemon("network") as daemon:
        folder = daemon.directory / "Schlüssel 鍵"  # Not in one code page.
        folder.mkdir()
        files = {key: shutil.copy(daemon.directory / name, folder)
                 for key, name in (("CA", "ca.pem"), ("CERT", "client.pem"), ("KEY", "client.key"))}
        certificate = {f"SLUICE_TLS_{key}": wine_module.windows_path(files[key]) for key in ("CERT", "KEY")}
        common = {"SLUICE_ENDPOINT": f"localhost:{daemon.port}", "SLUICE_TEST_KIND": "network", "LC_ALL": "C.UTF-8",
                  "SLUICE_TLS_CA": wine_module.windows_path(files["CA"]), "SLUICE_LOG": "info"}
        program = BUILD / "bin" / "vector_add.exe"
        code, output = wine.run([program], seconds=60, **common, **certificate)
        REPORT.check(code == 0 and "every element right" in output, "mutual TLS", output if code else "")
        code, output = wine.run([program], seconds=60, **common)
        REPORT.check(code != 0 and "set SLUICE_TLS_CERT" in output, "no certificate: refused, and said why", output)
        # The client's own certificate is no authority of the daemon's. Without SLUICE_LOG nothing but the program writes.
        silent = dict(common, SLUICE_TLS_CA=wine_module.windows_path(files["CERT"]), **certificate)
        del silent["SLUICE_LOG"]
        code, output = wine.run([program], seconds=60, **silent)
        REPORT.check(code != 0 and not re.search(r"\.cc:\d+\]", output), "another authority: gRPC writes nothing", output)


def driver_life(wine, daemon):
    program, driver = BUILD / "bin" / "driver_life.exe", wine_module.windows_path(DRIVER)
    there = {"SLUICE_ENDPOINT": daemon.endpoint()}
    nowhere = {"SLUICE_ENDPOINT": f"127.0.0.1:{harness.free_port()}", "SLUICE_CONNECT_TIMEOUT_MS": "500"}
    for name, arguments, variables in (("loaded, used and let go five times", ["rounds", "5"], there),
                                       ("leaves with commands in flight", ["leave"], there),
                                       ("callbacks that end their threads", ["exit"], there),
                                       *[("returns from main while others work", ["busy"], there)] * 8,
                                       ("no daemon: no platform, and silence", ["none"], nowhere)):
        code, output = wine.run([program, driver, *arguments], seconds=60, **variables)
        REPORT.check(code == 0 and output == "", name, f"exit code {code}: {output}" if code or output else "")
    library = wine_module.windows_path(BUILD / "bin" / "late_user.dll")
    code, output = wine.run([program, driver, "late", library], seconds=60, **there)
    REPORT.check(code == 0 and output == "returned", "calls that wait at the process's end", f"{code}: {output}")
    # Wine's server may keep a socket of a process that ended with I/O under way: the gateway, which pings its clients,
    # finds out within 30 s.
    REPORT.check(harness.wait_until(lambda: not daemon.workers(), 60), "the workers end with their clients")


def applications(wine, daemon):
    """Programs of the Linux system tests, and a user of Debian's ViennaCL headers, built for Windows."""
    for name, told in (("vector_add", "every element right"), ("viennacl_client", "PASS ")):
        program = BUILD / "bin" / f"{name}.exe"
        if not program.is_file():
            print(f"SKIP windows clients: {name}: not built (apt-get install libviennacl-dev)")
            continue
        code, output = wine.run([program], seconds=120, SLUICE_ENDPOINT=daemon.endpoint(), SLUICE_TEST_KIND="network")
        REPORT.check(code == 0 and told in output, name, output if code else "")


def beside_another(wine, daemon):
    """Another vendor's driver in the registry: both are there, and the other one also where no daemon answers."""
    other = wine_module.windows_path(BUILD / "bin" / "other_vendor.dll")
    wine.must("reg", "add", wine_module.VENDORS, "/v", other, "/t", "REG_DWORD", "/d", "0", "/f")
    program, name = BUILD / "bin" / "list_platforms.exe", "Another vendor's, 0 devices"
    code, output = wine.run([program], seconds=60, SLUICE_ENDPOINT=daemon.endpoint())
    lines = output.splitlines()
    ours = [line for line in lines if line.startswith("Sluice (") and not line.endswith(" 0 devices")]
    both = code == 0 and name in lines and len(ours) == 1 and len(lines) == 2
    REPORT.check(both, "beside another vendor's driver", "" if both else output)
    code, output = wine.run([program], seconds=60, SLUICE_ENDPOINT=f"127.0.0.1:{harness.free_port()}",
                            SLUICE_CONNECT_TIMEOUT_MS="500")
    alone = code == 0 and output.splitlines() == [name]
    REPORT.check(alone, "the other one alone where no daemon answers", "" if alone else output)
    wine.must("reg", "delete", wine_module.VENDORS, "/v", other, "/f")


def main():
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows clients: {reason}")
        return
    with harness.Daemon("network") as daemon, wine_module.Wine() as wine:
        wine.register_driver(DRIVER)
        driver_life(wine, daemon)
        applications(wine, daemon)
        beside_another(wine, daemon)
        tls(wine)
    REPORT.exit()


if __name__ == "__main__":
    main()
