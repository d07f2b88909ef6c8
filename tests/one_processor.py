#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command, and what it starts, on one of the processors that this one may use.

  tests/one_processor.py COMMAND [ARGUMENT]..."""
import os
import sys

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execvp(sys.argv[1], sys.argv[1:])
