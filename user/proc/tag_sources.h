/* SPDX-License-Identifier: MIT */
/*
 * tag_sources.h - where the threads of a process say what they allocate for.
 *
 * Done in two steps, like everything about mapped files: what a file says (once per file, cheap for the many
 * that say nothing), and what that means in a process that maps it, which depends on what the process's loader
 * wrote.
 */
#ifndef HT_PROC_TAG_SOURCES_H
#define HT_PROC_TAG_SOURCES_H

#include "base/std.h"
#include "base/err.h"
#include "elf/elf_symbols.h"
#include "heaptap/abi.h"
#include "profile/tag_labels.h"

struct reader;
struct elf_file;
struct proc_maps;

/* Per file; a linked object has one. */
#define TAG_DESCRIPTORS_CAP 4

struct tag_file {
	uint64_t descriptor_vaddr[TAG_DESCRIPTORS_CAP]; /* of heaptap/scope.h */
	uint32_t descriptor_cnt;
	bool has_otel, has_custom;
	struct tls_symbol otel, custom;
	/* Something is there but cannot be used: a sentence; the last one if there are two. "" = none */
	char problem[160];
	uint32_t problem_kind; /* HT_TAG_* of the problem */
};
/* -ENOENT: the file has nothing about tags. -ENOMEM. */
int tag_file_scan(struct elf_file *ef, struct tag_file *ret);

struct tag_sources {
	struct ht_tag_source source[HT_TAG_SOURCES_CAP];
	uint32_t cnt;
	bool is_pending; /* a source is not ready yet (the loader is at work): ask again */
	struct err problem; /* as in tag_file, for this process */
};
/*
 * The sources of one mapped file. tid: any live thread. dtv_shift: tag_dtv_shift(). 0, or the error with which
 * the process cannot be read (-ESRCH, -EPERM, -EACCES).
 */
int tag_sources_read(struct reader *reader, pid_t tid, const struct tag_file *file, uint64_t bias,
		     uint32_t dtv_shift, struct tag_sources *ret);

/* log2 of the entry size in bytes of the dynamic thread vector in the process's C library. */
uint32_t tag_dtv_shift(const struct proc_maps *maps);

/*
 * scope_descriptor.c: the descriptor of a program that uses heaptap/scope.h, the 640 bytes that
 * include/heaptap/TAGS.md ("Descriptor") lays out, read from the process and checked.
 */

#define SCOPE_DESCRIPTOR_BYTES 640
#define SCOPE_DESCRIPTOR_MAJOR 1U

struct scope_descriptor {
	uint16_t minor;
	uint16_t flags;
	uint32_t tls_mode; /* HT_TLS_*; HT_TLS_NOT_READY: no thread has pushed yet */
	int64_t tls_off; /* HT_TLS_STATIC */
	uint64_t dtv_module, dtv_off; /* HT_TLS_DTV */
	uint64_t registry_addr; /* HT_TLS_REGISTRY */
	uint32_t node_cnt, node_capacity;
	uint32_t init_pid, epoch;
	/* The program's own counters, since it began. */
	uint32_t overflows; /* names that the full node table had no room for */
	uint32_t underflows; /* pops without a push */
	uint32_t truncations; /* pushes deeper than the depth up to which nodes are made */
};

/*
 * 0; -EAGAIN: there is no descriptor yet (only zeroes); -EBADMSG: something else is there, for a moment while a
 * loader maps the file; -EPROTO: a descriptor that cannot be read. why is a sentence with the reason, for the
 * last two.
 */
int scope_descriptor_parse(const uint8_t raw[static SCOPE_DESCRIPTOR_BYTES],
			   struct scope_descriptor *ret, struct err *why);
/* The same, read at addr in a process; or the error of process_memory_read(). */
int scope_descriptor_read(struct reader *reader, pid_t tid, uint64_t addr,
			  struct scope_descriptor *ret, struct err *why);

/*
 * otel_process_ctx.c: the names of the thread-context keys that a process publishes.
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
int otel_process_ctx_read(struct reader *reader, pid_t tid, const struct proc_maps *maps,
			  uint64_t known_ns, struct otel_process_ctx *ret);
/* Decode the payload alone (pure). -EPROTO: not a protobuf of this shape. -ENOMEM. */
int otel_process_ctx_decode(const uint8_t *payload, size_t bytes, struct tag_keys *ret);

#endif
