#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what icd_loader.cc does not write by hand: for each slot of the dispatch table a function that jumps through the
table of its first argument, and the list of what OpenCL.dll exports.

usage: make_forwards.py CL/cl_icd.h OUT.S OUT.def
"""
import re
import sys

# Those whose first argument is no handle, or may be no handle; icd_loader.cc has them.
BY_HAND = ["clGetPlatformIDs", "clGetPlatformInfo", "clCreateContext", "clCreateContextFromType", "clWaitForEvents",
           "clUnloadCompiler", "clGetExtensionFunctionAddress"]

# What Khronos' loader answers for a null handle by itself; elsewhere the first platform's driver is asked.
NULL_CODES = {"clCreateSubDevicesEXT": -33, "clRetainDeviceEXT": -33, "clReleaseDeviceEXT": -33}  # CL_INVALID_DEVICE

FORWARD = """
  .globl Forward_{name}
Forward_{name}:
  testq %rcx, %rcx
  je 1f
  movq (%rcx), %rax
  jmp *{offset}(%rax)
1:
"""
ASK_DEFAULT = """  movq default_dispatch(%rip), %rax
  testq %rax, %rax
  je no_platform
  jmp *{offset}(%rax)
"""


def main():
    header, assembly, definition = sys.argv[1:]
    text = open(header).read()
    table = text[text.index("typedef struct _cl_icd_dispatch {"):text.index("} cl_icd_dispatch;")]
    table = re.sub(r"#else.*?#endif", "", table, flags=re.S)  # The typeless twins of Direct3D's slots.
    slots = re.findall(r"(cl[A-Z]\w*);", table)
    with open(assembly, "w") as out:
        out.write("  .text\nno_platform:\n  movl $-32, %eax  # CL_INVALID_PLATFORM\n  ret\n")
        for number, name in enumerate(slots):
            if name not in BY_HAND:
                out.write(FORWARD.format(name=name, offset=8 * number))
                out.write(f"  movl ${NULL_CODES[name]}, %eax\n  ret\n" if name in NULL_CODES
                          else ASK_DEFAULT.format(offset=8 * number))
    with open(definition, "w") as out:
        out.write("LIBRARY OpenCL.dll\nEXPORTS\n")
        for name in slots:
            out.write(f"  {name}\n" if name in BY_HAND else f"  {name} = Forward_{name}\n")


if __name__ == "__main__":
    main()
