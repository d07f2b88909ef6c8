#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Debian's pyopencl with numpy, unmodified: arrays, images, profiling, callbacks, binaries, mapping.

Each check_* function compares the device's result with numpy's. Prints one PASS or FAIL line.
"""
import os
import sys
import threading

import numpy as np
import pyopencl as cl
import pyopencl.array
import pyopencl.clmath
import pyopencl.clrandom
import pyopencl.elementwise
import pyopencl.reduction
import pyopencl.scan

KIND = os.environ["SLUICE_TEST_KIND"]


def expect(good, what):
    if not good:
        raise AssertionError(what)


def check_arrays(context, queue):
    x = np.linspace(0.1, 9.0, 10001).astype(np.float32)
    y = np.cos(x).astype(np.float32)
    dx, dy = cl.array.to_device(queue, x), cl.array.to_device(queue, y)
    expect(np.allclose((2 * dx + dy * dx - 3).get(), 2 * x + y * x - 3, rtol=1e-5), "array arithmetic")
    expect(np.allclose(cl.clmath.sin(dx).get(), np.sin(x), atol=1e-5), "clmath.sin")
    expect(np.isclose(cl.array.dot(dx, dy).get(), np.dot(x.astype(np.float64), y), rtol=1e-4), "dot")
    expect(int(cl.array.sum(cl.array.arange(queue, 1000, dtype=np.int32)).get()) == 499500, "sum")
    expect(np.array_equal(dx[100:200].get(), x[100:200]), "a slice, which is a sub-region")
    scan = cl.scan.InclusiveScanKernel(context, np.int32, "a+b", neutral="0")
    values = cl.array.to_device(queue, np.arange(5000, dtype=np.int32))
    scan(values)
    expect(np.array_equal(values.get(), np.cumsum(np.arange(5000, dtype=np.int32))), "inclusive scan")
    kernel = cl.reduction.ReductionKernel(context, np.float32, neutral="-1e30f", reduce_expr="fmax(a,b)",
                                          map_expr="x[i]*x[i]", arguments="__global const float *x")
    expect(np.isclose(kernel(dx).get(), (x * x).max()), "a reduction kernel")


IMAGE_SOURCE = """
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
kernel void invert(read_only image2d_t in, write_only image2d_t out) {
  int2 at = (int2)(get_global_id(0), get_global_id(1));
  write_imageui(out, at, (uint4)(255) - read_imageui(in, nearest, at));
}
"""


def check_images(context, queue):
    height, width = 61, 83
    pixels = np.random.default_rng(7).integers(0, 256, (height, width, 4), dtype=np.uint8)
    layout = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    source = cl.Image(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, layout,
                      shape=(width, height), hostbuf=pixels)
    target = cl.Image(context, cl.mem_flags.READ_WRITE, layout, shape=(width, height))
    program = cl.Program(context, IMAGE_SOURCE).build()
    program.invert(queue, (width, height), None, source, target)
    result = np.empty_like(pixels)
    cl.enqueue_copy(queue, result, target, origin=(0, 0), region=(width, height))
    expect(np.array_equal(result, 255 - pixels), "inverting an image")
    cl.enqueue_copy(queue, target, pixels, origin=(0, 0), region=(width, height))
    mapped, _, _, _ = cl.enqueue_map_image(queue, target, cl.map_flags.READ, (0, 0), (width, height),
                                           (height, width, 4), np.uint8)
    expect(np.array_equal(mapped, pixels), "a mapped image")
    mapped.base.release(queue)
    queue.finish()


LOOP_SOURCE = """
kernel void spin(global uint *out, uint passes) {
  uint x = get_global_id(0);
  for (uint i = 0; i < passes; ++i) x = x * 1664525u + 1013904223u;
  out[get_global_id(0)] = x;
}
"""


def check_profiling(context, queue):
    profiled = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    program = cl.Program(context, LOOP_SOURCE).build()
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * 64)
    event = program.spin(profiled, (64,), None, out, np.uint32(200000))
    event.wait()
    times = [event.profile.queued, event.profile.submit, event.profile.start, event.profile.end]
    expect(times == sorted(times) and times[3] > times[2], f"profiling times in order: {times}")
    expect(times[3] - times[2] < 60e9, "a profiled launch of less than a minute")


def check_callbacks(context, queue):
    program = cl.Program(context, LOOP_SOURCE).build()
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * 64)
    gate = cl.UserEvent(context)
    done, statuses = threading.Event(), []
    event = program.spin(queue, (64,), None, out, np.uint32(10), wait_for=[gate])

    def on_complete(status):
        statuses.append(status)
        done.set()

    event.set_callback(cl.command_execution_status.COMPLETE, on_complete)
    queue.flush()
    expect(not done.is_set(), "no callback before the gate opens")
    gate.set_status(cl.command_execution_status.COMPLETE)
    expect(done.wait(30), "the callback arrives")
    expect(statuses == [cl.command_execution_status.COMPLETE], f"the callback's status: {statuses}")


def check_binaries(context, queue):
    first = cl.Program(context, LOOP_SOURCE).build()
    device = context.devices[0]
    binary = first.get_info(cl.program_info.BINARIES)[0]
    second = cl.Program(context, [device], [binary]).build()
    results = []
    for program in (first, second):
        out = cl.array.zeros(queue, 64, np.uint32)
        program.spin(queue, (64,), None, out.data, np.uint32(7))
        results.append(out.get())
    expect(results[0].any() and np.array_equal(*results), "a program from its own binary")


def check_build_failure(context, queue):
    try:
        cl.Program(context, "kernel void broken(global int *a) { a[0] = undeclared_name; }").build()
    except cl.RuntimeError as error:
        expect("undeclared_name" in str(error), f"the build log names the mistake: {error}")
    else:
        raise AssertionError("a wrong program was built")


def check_mapping(context, queue):
    data = np.arange(4096, dtype=np.int32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    buffer = cl.Buffer(context, flags, data.nbytes)
    mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.WRITE, 0, data.shape, data.dtype)
    mapped[:] = data
    mapped.base.release(queue)
    result = np.empty_like(data)
    cl.enqueue_copy(queue, result, buffer)
    expect(np.array_equal(result, data), "what was written through a mapping")
    part = np.empty(100, np.int32)
    cl.enqueue_copy(queue, part, buffer, src_offset=400)
    expect(np.array_equal(part, data[100:200]), "a read at an offset")


def main():
    wanted = [p for p in cl.get_platforms() if p.name.startswith("Sluice (") == (KIND != "native")]
    if not wanted:
        sys.exit(f"FAIL pyopencl: no platform for {KIND} among {[p.name for p in cl.get_platforms()]}")
    context = cl.Context(wanted[0].get_devices())
    queue = cl.CommandQueue(context)
    checks = [value for name, value in globals().items() if name.startswith("check_")]
    for check in checks:
        try:
            check(context, queue)
        except (AssertionError, cl.Error) as error:
            sys.exit(f"FAIL pyopencl: {check.__name__}: {error}")
    print(f"PASS pyopencl: {', '.join(c.__name__[6:] for c in checks)} agree with numpy on {wanted[0].name}")


if __name__ == "__main__":
    main()
