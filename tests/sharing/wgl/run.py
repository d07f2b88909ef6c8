#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The OpenGL sharing tests under Wine, with WGL contexts on software rendering; sluice_icd.dll is found in the registry.

usage: run.py [network] [ring] [GoogleTest's flags]
  network  the driver talks to a real Linux sluiced on loopback
  ring     to sluiced.exe and its worker, both under Wine; the worker's driver is Wine's OpenCL.dll
Without one, both.
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "windows"))

import sharing_suite  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = BIN / "sluice_gl_test.exe"


if __name__ == "__main__":
    PARTS = sharing_suite.transports(PROGRAM)
    sys.exit(sharing_suite.main(sys.argv[1:], __doc__, [PROGRAM], PARTS, PARTS))
