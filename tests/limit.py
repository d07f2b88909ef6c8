#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""limit.py SECONDS COMMAND [ARGUMENT]...: runs the command, and ends it and its children when the time is over.

The seconds are those of a machine that is not busy: while programs wait for a processor, the clock runs at a quarter of
its speed. So a busy machine gets up to four times as long, and what hangs while nothing computes ends in time. The
kernel says how long programs have waited (/proc/pressure/cpu); where it does not, the clock is the wall's.
The rest is as with coreutils' timeout -k 10. The exit code is 124 when the time was over, and 137 if the command had to
be killed. A signal to this ends the command, which is in the same process group, a new one.
"""
import os
import signal
import subprocess
import sys
import time

GRACE_SECONDS = 10
BUSY_SPEED = 0.25
HEARD = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def waited_for_processor():
    """Seconds in which some program did, since the machine was started."""
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as pressure:
            return int(pressure.readline().rsplit("total=", 1)[1]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0


class Clock:
    def __init__(self):
        self.began, self.waited = time.monotonic(), waited_for_processor()

    def passed(self):
        wall = time.monotonic() - self.began
        return wall - (1 - BUSY_SPEED) * min(wall, waited_for_processor() - self.waited)


def watch(process, seconds):
    """Until it has ended: its exit code."""
    clock, told, over = Clock(), None, False
    while process.poll() is None:
        heard = signal.sigtimedwait(HEARD, 0.5)
        if told is None and heard is not None and heard.si_signo != signal.SIGCHLD:
            told = time.monotonic()
            os.killpg(0, heard.si_signo)  # Blocked here.
        elif told is None and clock.passed() > seconds:
            over, told = True, time.monotonic()
            os.killpg(0, signal.SIGTERM)
        elif told is not None and time.monotonic() - told > GRACE_SECONDS:
            os.killpg(0, signal.SIGKILL)
    code = process.returncode
    return 124 if over else code if code >= 0 else 128 - code


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.stderr.write(__doc__)
        return 125
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    try:
        # pylint: disable-next=subprocess-popen-preexec-fn
        process = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
    except OSError as error:
        sys.stderr.write(f"limit.py: {sys.argv[2]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126
    return watch(process, int(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
