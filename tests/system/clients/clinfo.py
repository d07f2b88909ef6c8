#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""clinfo through Sluice prints what it prints with the native driver, line by line.

Both of clinfo's formats are compared as (label, value) lists. A line may differ only when DOCUMENTED names
its label, and then only as its rule allows. Prints every difference it accepted, and one PASS or FAIL line.
Native against native must show no difference at all, which checks this script.
"""
import difflib
import os
import re
import subprocess
import sys

KIND = os.environ["SLUICE_TEST_KIND"]


def anything(native, sluice):
    return True


def fewer_words(native, sluice):
    """Extensions: hidden ones may go; what is added must be one that Sluice itself implements."""
    added = set(re.findall(r"cl_[a-z0-9_]+", sluice)) - set(re.findall(r"cl_[a-z0-9_]+", native))
    return added <= {"cl_khr_icd", "cl_khr_create_command_queue", "cl_khr_device_uuid", "cl_khr_il_program",
                     "cl_khr_pci_bus_info", "cl_khr_extended_versioning", "cl_khr_subgroups",
                     "cl_khr_suggested_local_work_size", "cl_khr_terminate_context",
                     "cl_khr_initialize_memory", "cl_khr_priority_hints", "cl_khr_throttle_hints",
                     "cl_sluice_shared_resource", "cl_khr_gl_sharing", "cl_khr_gl_event", "cl_khr_egl_image",
                     "cl_khr_egl_event", "cl_khr_gl_depth_images", "cl_img_use_gralloc_ptr"}


def not_larger(native, sluice):
    """Sizes that a quota may bound: present, above zero, never above the driver's."""
    numbers = [re.match(r"\s*(\d+)", text or "") for text in (native, sluice)]
    return all(numbers) and 0 < int(numbers[1][1]) <= int(numbers[0][1])


# label (a regular expression for the whole label, either format) -> rule
DOCUMENTED = {
    # The platform's own lines.
    r"(Platform (Name|Version|Extensions function suffix|Host timer resolution))": anything,
    r"CL_PLATFORM_(NAME|VERSION|ICD_SUFFIX_KHR|HOST_TIMER_RESOLUTION)": anything,
    # Extensions hidden (Sluice does not implement their functions) or added (Sluice gives them).
    r"(Platform|Device) Extensions( with Version)?|CL_(PLATFORM|DEVICE)_EXTENSIONS(_WITH_VERSION)?":
        fewer_words,
    # Queries of a hidden or added extension appear and vanish with it.
    r"CL_DEVICE_(COMMAND_BUFFER|TERMINATE|PCI_BUS_INFO|UUID|LUID|NODE_MASK|PRIORITY|THROTTLE).*": anything,
    r"(CL_)?(DEVICE|DRIVER)_?(LUID|UUID).*|(Device|Driver) (UUID|LUID).*|PCI bus info.*|Valid Device LUID":
        anything,
    r"Command buffer.*|Required queue properties for command buffer|Context termination.*|"
    r"Terminate capability.*": anything,
    # Shared virtual memory is absent where the worker cannot give the client the same address.
    r".*SVM.*|.*Shared Virtual Memory.*|(Coarse|Fine)-grained .* sharing|Atomics": anything,
    # So is the unified shared memory of cl_intel_unified_shared_memory (PoCL 6.0), whose functions are hidden.
    r"CL_DEVICE_\w+_MEM_CAPABILITIES_INTEL|Unified Shared Memory \(USM\)|.* USM cap.*": anything,
    # Native kernels are the application's own code; another process cannot run them.
    r"Run native kernels|CL_DEVICE_EXECUTION_CAPABILITIES": anything,
    # Bounded by a session's quota.
    r"Global memory size|Max memory allocation|CL_DEVICE_(GLOBAL_MEM|MAX_MEM_ALLOC)_SIZE": not_larger,
    r"Max size for global variable|CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE": not_larger,
}


def clinfo(option, env):
    result = subprocess.run(["clinfo"] + option, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=60, check=False)
    if result.returncode != 0:
        sys.exit(f"FAIL clinfo: ended with {result.returncode}:\n{result.stdout.decode()}")
    return result.stdout.decode()


def native_environment():
    return {name: value for name, value in os.environ.items()
            if name not in ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "SLUICE_ENDPOINT")}


def pairs(text):
    """(path of labels, value) for each entry; a line without a label continues the entry before it."""
    found, parents = [], []  # parents: (indentation, label) of the entries that enclose the line.
    for line in text.splitlines():
        line = re.sub(r"Sluice \((.*?)\)", r"\1", line)  # Where a platform's name is a value.
        line = re.sub(r"\[(SLUICE|POCL)\b", "[SUFFIX", line)  # clinfo names devices by the suffix.
        line = re.sub(r"0x[0-9a-f]{9,}", "ADDRESS", line)
        line = re.sub(r"^\[[A-Z]+/[0-9*]+\]", "", line)  # The device's tag in the raw format.
        match = re.match(r"( *)(\S.*?)(?:  +| *$)(.*)$", line)
        if line.startswith(" " * 30) and found:
            found[-1] = (found[-1][0], found[-1][1] + " " + " ".join(line.split()))
        elif match:
            indentation, label = len(match[1]), match[2]
            parents = [entry for entry in parents if entry[0] < indentation] + [(indentation, label)]
            found.append((tuple(name for _, name in parents), " ".join(match[3].split())))
    return found


def rule_for(path):
    """The rule of the entry itself or of one that encloses it: what is hidden takes its details along."""
    return next((rule for label in reversed(path) for pattern, rule in DOCUMENTED.items()
                 if re.fullmatch(pattern, label)), None)


def shown(before, after):
    """Two values, without the words that both have when they are long lists."""
    if before and after and len(before) + len(after) > 120:
        before, after = ("... " + " ".join(word for word in one.split() if word not in other.split())
                         for one, other in ((before, after), (after, before)))
    return f"native '{before}', Sluice '{after}'"


def compare(native, sluice):
    """Differences that are not documented; prints those that are."""
    bad = []
    matcher = difflib.SequenceMatcher(a=native, b=sluice, autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            continue
        ours, theirs = dict(sluice[b0:b1]), dict(native[a0:a1])
        for path in list(theirs) + [path for path in ours if path not in theirs]:
            before, after = theirs.get(path), ours.get(path)
            if before == after:
                continue
            rule = rule_for(path)
            good = rule is not None and rule(before or "", after or "")
            line = f"{' / '.join(path[-2:])}: {shown(before, after)}"
            if good:
                print("  documented: " + line)
            else:
                bad.append(line)
    return bad


def main():
    platform = clinfo(["--raw"], dict(os.environ))
    name = re.search(r"CL_PLATFORM_NAME +(.*)", platform)
    if name is None or name[1].startswith("Sluice (") != (KIND != "native"):
        sys.exit(f"FAIL clinfo: the platform under {KIND} is {name and name[1]!r}")
    bad, lines = [], 0
    for option in (["--raw"], []):
        native = pairs(clinfo(option, native_environment()))
        lines += len(native)
        bad += compare(native, pairs(clinfo(option, dict(os.environ))))
    if bad:
        print("\n".join("  NOT documented: " + line for line in bad))
        sys.exit(f"FAIL clinfo: {len(bad)} of {lines} entries differ from native without being documented")
    print(f"PASS clinfo: {lines} entries equal native's on {name[1]}, apart from the documented ones above")


if __name__ == "__main__":
    main()
