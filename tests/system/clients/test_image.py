#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Makes the picture that the darktable test develops, and compares two developed pictures.

    test_image.py make            a 320x240 16-bit PPM on standard output
    test_image.py compare A B     PNG files; exit 1 when they differ by more than rounding
"""
import math
import subprocess
import sys

WIDTH, HEIGHT = 320, 240


def make():
    picture = bytearray(b"P6 %d %d 65535\n" % (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for c in range(3):
                wave = math.sin(x / (13 + 5 * c) + c) * math.cos(y / (11 + 3 * c))
                picture += int(65535 * (0.5 + 0.45 * wave)).to_bytes(2, "big")
    sys.stdout.buffer.write(picture)


def pixels(path):
    """Size and samples of an 8-bit PNG, through netpbm."""
    data = subprocess.run(["pngtopnm", path], stdout=subprocess.PIPE, check=True).stdout
    magic, size, depth, samples = data.split(b"\n", 3)
    assert magic == b"P6" and depth == b"255", (magic, depth)
    return size, samples


def compare(first, second):
    (size_a, a), (size_b, b) = pixels(first), pixels(second)
    if size_a != size_b or len(a) != len(b):
        sys.exit(f"sizes {size_a} and {size_b}")
    if max(a) - min(a) < 100:
        sys.exit("the picture is nearly one colour")
    differences = [abs(x - y) for x, y in zip(a, b)]
    mean = sum(differences) / len(differences)
    print(f"mean difference {mean:.3f}, largest {max(differences)} of 255")
    # OpenCL's fast arithmetic moves single steps at edges; anything visible is an error.
    sys.exit(0 if mean < 0.2 and max(differences) <= 12 else 1)


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        compare(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
