/* SPDX-License-Identifier: MIT */
/*
 * otel_process_ctx.h - the names of the thread-context keys that a process publishes.
 *
 * Formats: OpenTelemetry OTEP 4719 (process context, header version 2) and OTEP 4947 (thread
 * context), as merged in 2026. A mapping with the name OTEL_CTX holds a header that points at a
 * protobuf ProcessContext; its attribute `threadlocal.attribute_key_map` is an array of strings,
 * key index = place in the array; it is only ever added to.
 *
 * Choices where the texts are open, or writers disagree:
 * - The schema is to become "tls_v1" but the published text still says "tlsdesc_v1_dev": both are accepted, and
 *   also no schema. Any other schema (Go's pprof labels, Node.js) is not about the thread-local pointer: no
 *   keys.
 * - The keys belong in ProcessContext.attributes (field 2); a released writer put them among the resource's
 *   attributes. We take them from there when field 2 has none.
 * - Header version 1 is "for development" and its layout is not published: not read.
 * - The payload may be freed by the next update; the header's time shows that, so it is read again afterwards.
 */
#ifndef HT_PROC_OTEL_PROCESS_CTX_H
#define HT_PROC_OTEL_PROCESS_CTX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/tag_labels.h"

struct proc_maps;

#define OTEL_PAYLOAD_BYTES_CAP (256 * 1024)

struct otel_process_ctx {
	uint64_t published_ns; /* changes with every update */
	struct tag_keys keys; /* cnt 0: the process publishes none for threads */
};

/*
 * known_ns: published_ns of the caller's copy, or 0. On 0, the caller releases ret->keys with
 * tag_keys_release(). -ENOENT: the process publishes nothing. -EALREADY: unchanged since known_ns. -EAGAIN: it
 * is being updated. -EPROTO: not the format, or an unknown version of it. tid: any live thread; maps: the
 * process's mappings, just read.
 */
int otel_process_ctx_read(pid_t tid, const struct proc_maps *maps, uint64_t known_ns,
			  struct otel_process_ctx *ret);
/* Decode the payload alone (pure). -EPROTO: not a protobuf of this shape. -ENOMEM. */
int otel_process_ctx_decode(const uint8_t *payload, size_t bytes, struct tag_keys *ret);

#endif
