/* SPDX-License-Identifier: MIT */
/*
 * scope_descriptor.h - the descriptor of a program that uses heaptap/scope.h: the 640 bytes that
 * include/heaptap/TAGS.md ("Descriptor") lays out, read from the process and checked.
 */
#ifndef HT_PROC_SCOPE_DESCRIPTOR_H
#define HT_PROC_SCOPE_DESCRIPTOR_H

#include <stdint.h>
#include <sys/types.h>

struct err;

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
int scope_descriptor_read(pid_t tid, uint64_t addr, struct scope_descriptor *ret, struct err *why);

#endif
