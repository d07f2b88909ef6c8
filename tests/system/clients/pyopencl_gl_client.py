#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Debian's pyopencl and PyOpenGL sharing objects, unmodified: a particle system whose vertex buffer OpenCL
moves and OpenGL holds, and an image filter from one texture to another. After PyOpenCL's own examples
(gl_particle_animation.py, gl_interop_demo.py), without a window: EGL on Mesa's surfaceless platform.

Every frame is compared with numpy. Prints one PASS or FAIL line; exit 77 where there is no EGL.
"""
import ctypes
import os
import sys

os.environ["PYOPENGL_PLATFORM"] = "egl"

import numpy as np
import pyopencl as cl

try:
    from OpenGL import EGL, GL
except ImportError as problem:
    print(f"SKIP pyopencl_gl: {problem}")
    sys.exit(77)

if not cl.have_gl():
    print(f"SKIP pyopencl_gl: pyopencl {cl.VERSION_TEXT} was built without OpenGL sharing")
    sys.exit(77)

EGL_PLATFORM_SURFACELESS_MESA = 0x31DD

SOURCE = """
kernel void move(global float4* at, global const float4* speed, float seconds) {
  const int i = get_global_id(0);
  at[i] += speed[i] * seconds;
}
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
kernel void mirror(read_only image2d_t in, write_only image2d_t out, int width) {
  const int2 at = (int2)(get_global_id(0), get_global_id(1));
  write_imagef(out, at, read_imagef(in, nearest, (int2)(width - 1 - at.x, at.y)));
}
"""


def expect(good, what):
    if not good:
        raise AssertionError(what)


def gl_context():
    """An EGL display and a current OpenGL context, as ctypes pointers."""
    library = ctypes.CDLL("libEGL.so.1")
    library.eglGetPlatformDisplay.restype = ctypes.c_void_p
    library.eglGetPlatformDisplay.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p]
    library.eglCreateContext.restype = ctypes.c_void_p
    library.eglCreateContext.argtypes = [ctypes.c_void_p] * 4
    library.eglInitialize.argtypes = [ctypes.c_void_p] * 3
    library.eglMakeCurrent.argtypes = [ctypes.c_void_p] * 4
    display = library.eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, None, None)
    if not display or not library.eglInitialize(display, None, None):
        print("SKIP pyopencl_gl: no EGL display")
        sys.exit(77)
    library.eglBindAPI(EGL.EGL_OPENGL_API)
    context = library.eglCreateContext(display, None, None, None)
    expect(context, "an OpenGL context")
    expect(library.eglMakeCurrent(display, None, None, context), "the OpenGL context made current")
    return ctypes.c_void_p(display), ctypes.c_void_p(context)


def read_buffer(buffer, like):
    GL.glBindBuffer(GL.GL_ARRAY_BUFFER, buffer)
    data = GL.glGetBufferSubData(GL.GL_ARRAY_BUFFER, 0, like.nbytes)
    return np.frombuffer(data, dtype=like.dtype).reshape(like.shape)


def check_particles(context, queue, program):
    random = np.random.default_rng(3)
    count, frames = 20000, 25
    at = random.standard_normal((count, 4)).astype(np.float32)
    speed = random.standard_normal((count, 4)).astype(np.float32)
    buffer = GL.glGenBuffers(1)
    GL.glBindBuffer(GL.GL_ARRAY_BUFFER, buffer)
    GL.glBufferData(GL.GL_ARRAY_BUFFER, at.nbytes, at, GL.GL_DYNAMIC_DRAW)
    GL.glFinish()
    shared = cl.GLBuffer(context, cl.mem_flags.READ_WRITE, int(buffer))
    speeds = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=speed)
    for frame in range(frames):
        cl.enqueue_acquire_gl_objects(queue, [shared])
        program.move(queue, (count,), None, shared, speeds, np.float32(0.25))
        cl.enqueue_release_gl_objects(queue, [shared])
        queue.finish()
        at += speed * np.float32(0.25)
        expect(np.allclose(read_buffer(buffer, at), at, atol=1e-4), f"particles of frame {frame}")


def check_filter(context, queue, program):
    width, height = 160, 90
    pixels = np.random.default_rng(5).integers(0, 256, (height, width, 4), dtype=np.uint8)
    textures = GL.glGenTextures(2)
    for texture, data in zip(textures, (pixels, None)):
        GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAX_LEVEL, 0)
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA8, width, height, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, data)
    GL.glFinish()
    source = cl.GLTexture(context, cl.mem_flags.READ_ONLY, GL.GL_TEXTURE_2D, 0, int(textures[0]), 2)
    target = cl.GLTexture(context, cl.mem_flags.WRITE_ONLY, GL.GL_TEXTURE_2D, 0, int(textures[1]), 2)
    cl.enqueue_acquire_gl_objects(queue, [source, target])
    program.mirror(queue, (width, height), None, source, target, np.int32(width))
    cl.enqueue_release_gl_objects(queue, [source, target])
    queue.finish()
    GL.glBindTexture(GL.GL_TEXTURE_2D, textures[1])
    data = GL.glGetTexImage(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE)
    seen = np.frombuffer(data, dtype=np.uint8).reshape(pixels.shape)
    expect(np.array_equal(seen, pixels[:, ::-1]), "the mirrored picture")


def main():
    platform = cl.get_platforms()[0]
    if "cl_khr_gl_sharing" not in platform.extensions:
        print(f"SKIP pyopencl_gl: {platform.name} has no cl_khr_gl_sharing")
        sys.exit(77)
    display, gl = gl_context()
    names = cl.context_properties
    context = cl.Context(properties=[(names.PLATFORM, platform), (names.GL_CONTEXT_KHR, gl),
                                     (names.EGL_DISPLAY_KHR, display)], devices=platform.get_devices())
    queue = cl.CommandQueue(context)
    program = cl.Program(context, SOURCE).build()
    check_particles(context, queue, program)
    check_filter(context, queue, program)
    print(f"PASS pyopencl_gl: particles and a filter on {platform.name}")


if __name__ == "__main__":
    try:
        main()
    except Exception as problem:  # One line for the log of the run.
        print(f"FAIL pyopencl_gl: {type(problem).__name__}: {problem}")
        sys.exit(1)
