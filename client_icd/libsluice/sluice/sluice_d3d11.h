/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsluice on Windows: resources that are Direct3D 11 textures and buffers (SLUICE_BACKING_D3D11).
 *
 * sluice_export gives two handles of one: the resource's (ID3D11Device1::OpenSharedResource1) and
 * its fence's (ID3D11Device5::OpenSharedFence). The functions below open both on the program's
 * device and do what a turn asks of Direct3D. A program that does it itself keeps to these rules. A
 * writer's device signals the fence with hold.generation + 1 behind its work, before
 * sluice_release. Whoever acquires waits for hold.generation, unless the hold is indeterminate or
 * the generation is 0. A reader releases once its device is done.
 *
 * Where Direct3D cannot share (Windows before 10 version 1703, Wine), sluice_create answers
 * SLUICE_UNSUPPORTED; SLUICE_BACKING_MEMFD, a section, is there everywhere, with the same turns.
 *
 * A connection outlives what was opened with it. Not for one texture from two threads at once; its
 * device's immediate context is used in acquire and release, which is the caller's to serialise.
 */
#ifndef SLUICE_SLUICE_D3D11_H
#define SLUICE_SLUICE_D3D11_H

#include <sluice/sluice.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ID3D11Device;
struct ID3D11Resource;

typedef struct sluice_d3d11 sluice_d3d11;

/* Opens a resource of SLUICE_BACKING_D3D11 on `device`, of which a reference is kept. It must be of
 * the adapter that the daemon's is (the LUID is the first 8 bytes of sluice_handle's device_uuid).
 */
sluice_status sluice_d3d11_open(sluice_connection* connection, const sluice_capability* capability,
                                sluice_access access, struct ID3D11Device* device,
                                sluice_d3d11** opened);

/* An ID3D11Texture2D or ID3D11Buffer; the reference stays `opened`'s. */
struct ID3D11Resource* sluice_d3d11_resource(const sluice_d3d11* opened);

/* As sluice_acquire; then also the device's work of the turn before is done. If that does not get
 * done within ten seconds, the hold is indeterminate. */
sluice_status sluice_d3d11_acquire(sluice_d3d11* opened, uint32_t timeout_ms, sluice_hold* hold);

/* As sluice_release, for what the immediate context has been given so far. */
sluice_status sluice_d3d11_release(sluice_d3d11* opened, const sluice_hold* hold, uint32_t flags);

void sluice_d3d11_close(sluice_d3d11* opened); /* null does nothing */

#ifdef __cplusplus
}
#endif

#endif
