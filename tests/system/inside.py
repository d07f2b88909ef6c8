# SPDX-License-Identifier: Apache-2.0
"""What a process of the daemon's may do, asked from inside it: its main thread, which waits in a system call, makes
another one in between (ptrace, as root), under all that confines it. x86-64 only."""
import ctypes
import errno
import os
import platform
import signal
import socket
import struct

MISSING = "" if platform.machine() == "x86_64" else f"no system calls are made from inside on {platform.machine()}"

_OPENAT, _CLOSE, _SOCKET, _CONNECT, _BIND = 257, 3, 41, 42, 49
_AT_FDCWD = -100
_SEIZE, _INTERRUPT, _GETREGS, _SETREGS, _SINGLESTEP, _DETACH = 0x4206, 0x4207, 12, 13, 9, 17
_WALL = 0x40000000
_NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
          "ds es fs gs").split()
_BELOW_STACK = 4096  # Memory that nobody uses: below the red zone.


class _Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in _NAMES]


def _ptrace(request, pid, data=None):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, pid, None, ctypes.byref(data) if data is not None else None) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {pid}")


class Inside:
    """with Inside(pid) as it: the process waits meanwhile."""

    def __init__(self, pid):
        self.pid = pid
        self.before = _Registers()

    def __enter__(self):
        _ptrace(_SEIZE, self.pid)
        _ptrace(_INTERRUPT, self.pid)
        os.waitpid(self.pid, _WALL)
        _ptrace(_GETREGS, self.pid, self.before)
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            memory.seek(self.before.rip - 2)
            assert memory.read(2) == b"\x0f\x05", "its main thread does not wait in a system call"
        return self

    def __exit__(self, *unused):
        _ptrace(_SETREGS, self.pid, self.before)
        _ptrace(_DETACH, self.pid)

    def _call(self, number, *arguments):
        """What the system call returns; bytes are passed by their address."""
        registers = _Registers.from_buffer_copy(self.before)
        registers.rip, registers.rax, registers.orig_rax = self.before.rip - 2, number, 2**64 - 1
        address = self.before.rsp - _BELOW_STACK
        for name, argument in zip(("rdi", "rsi", "rdx", "r10"), arguments):
            if isinstance(argument, bytes):
                with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
                    memory.seek(address)
                    memory.write(argument)
                argument = address
            setattr(registers, name, argument % 2**64)
        _ptrace(_SETREGS, self.pid, registers)
        _ptrace(_SINGLESTEP, self.pid)
        _, status = os.waitpid(self.pid, _WALL)
        assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP, status
        _ptrace(_GETREGS, self.pid, registers)
        return ctypes.c_longlong(registers.rax).value

    def _answer(self, result):
        return "ok" if result >= 0 else errno.errorcode[-result]

    def open(self, path, flags=os.O_RDONLY):
        """"ok", or the error's name."""
        result = self._call(_OPENAT, _AT_FDCWD, os.fsencode(path) + b"\0", flags)
        if result >= 0:
            self._call(_CLOSE, result)
        return self._answer(result)

    def _with_port(self, number, port):
        made = self._call(_SOCKET, socket.AF_INET, socket.SOCK_STREAM, 0)
        if made < 0:
            return self._answer(made)
        address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton("127.0.0.1"))
        result = self._call(number, made, address, len(address))
        self._call(_CLOSE, made)
        return self._answer(result)

    def socket(self, family, kind, protocol=0):
        made = self._call(_SOCKET, family, kind, protocol)
        if made >= 0:
            self._call(_CLOSE, made)
        return self._answer(made)

    def connect(self, port):
        return self._with_port(_CONNECT, port)

    def bind(self, port):
        return self._with_port(_BIND, port)
