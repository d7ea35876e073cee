/* SPDX-License-Identifier: MIT */
/*
 * scope_spec.c - what the specification of the tag ABI (include/heaptap/TAGS.md) says, as the header
 * does it. It is in Top/A, tenant=acme, instance 17 of the task "query", the same each time.
 *
 *	scope_spec layout	"TABLE OFF TYPE FIELD" for each field of the header's structs
 *	scope_spec bytes	the example: in hex, with addresses and the pid made equal everywhere
 *	scope_spec wait		prints READY; until the end of stdin
 *	scope_spec dtv		the same in mode 2, glibc's, as the specification says it is computed
 *	scope_spec FAULT	the same after one thing was broken; "faults" lists them
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "heaptap/scope.h"

/* Where things are in the example. */
#define EXAMPLE_CHUNK UINT64_C(0x10000000)
#define EXAMPLE_NAMES UINT64_C(0x20000000)
#define EXAMPLE_TLS_OFF (-32)
#define EXAMPLE_PID 1000

#define FIELD(table, type, field, shown) \
	printf(table " %zu " shown " " #field "\n", offsetof(type, field))
static void layout(void)
{
#define D(type, field) FIELD("descriptor", struct heaptap_descriptor_, field, type)
	D("u16", semaphore);
	D("u16", major_version);
	D("u16", minor_version);
	D("u16", descriptor_bytes);
	D("u8[8]", magic);
	D("u16", record_bytes);
	D("u16", node_bytes);
	D("u8", tls_mode);
	D("u8", pointer_bytes);
	D("u16", flags);
	D("i64", tls_off);
	D("u64", dtv_module);
	D("u64", dtv_off);
	D("u32", node_cap);
	D("u32", node_cnt);
	D("u32", chunk_shift);
	D("u32", overflows);
	D("u64", kv_keys_addr);
	D("u32", underflows);
	D("u32", truncations);
	D("u32", pid);
	D("u32", epoch);
	D("u64", registry_addr);
	D("u64[4]", reserved);
	D("u64[64]", chunk_addr);
#define N(type, field) FIELD("node", struct heaptap_node_, field, type)
	N("u32", parent);
	N("u16", kind);
	N("u16", flags);
	N("u64", name_addr);
	N("u64", value_addr);
	N("u16", name_len);
	N("u16", value_len);
	N("u32", hash);
#define R(type, field) FIELD("record", heaptap_state, field, type)
	R("u64", scope);
	R("u64", instance);
	R("u64", kv);
#ifdef HEAPTAP_SCOPE_REGISTRY
#define S(type, field) FIELD("registry", struct heaptap_registry_, field, type)
	S("u32", version);
	S("u32", shift);
	S("u64", reserved);
	S("slots", slot);
	printf("slot 0 u32 tid\nslot %zu u32 reserved\nslot %zu u64 record_addr\n",
	       offsetof(struct heaptap_registry_, slot[0].reserved) -
		       offsetof(struct heaptap_registry_, slot),
	       offsetof(struct heaptap_registry_, slot[0].record_addr) -
		       offsetof(struct heaptap_registry_, slot));
#endif
}

static void hex(const char *title, uint64_t base, const void *data, size_t bytes)
{
	const unsigned char *byte = data;

	printf("%s\n", title);
	for (size_t i = 0; i < bytes; i += 16) {
		printf("%08llx ", (unsigned long long)base + i);
		for (size_t k = i; k < i + 16 && k < bytes; k++)
			printf("%s %02x", k == i + 8 ? " " : "", byte[k]);
		printf("\n");
	}
}

static void example(heaptap_state state)
{
	struct heaptap_descriptor_ d = heaptap_scope_v1;
	struct heaptap_node_ node[5];
	uint64_t names = heaptap_scope_pool_v1.node[1].name_addr, record[4];

	memcpy(node, heaptap_scope_pool_v1.node, sizeof(node));
	for (int i = 1; i < 5; i++) {
		node[i].name_addr += EXAMPLE_NAMES - names;
		node[i].value_addr += node[i].value_addr ? EXAMPLE_NAMES - names : 0;
	}
	d.semaphore = 0;
	d.pid = EXAMPLE_PID;
	d.tls_off = EXAMPLE_TLS_OFF;
	d.chunk_addr[0] = EXAMPLE_CHUNK;
	memcpy(record, &state, sizeof(state));
	record[3] = 0;
	hex("descriptor", 0, &d, 144);
	hex("nodes", EXAMPLE_CHUNK, node, sizeof(node));
	hex("names", EXAMPLE_NAMES, (const void *)(uintptr_t)names, 19);
	hex("record", 0, record, sizeof(record));
}

static void break_it(const char *fault)
{
	struct heaptap_descriptor_ *d = &heaptap_scope_v1;
	struct heaptap_node_ *node = heaptap_scope_pool_v1.node;

#define FAULT(name, ...)               \
	if (!strcmp(fault, "faults"))  \
		printf("%s\n", name);  \
	else if (!strcmp(fault, name)) \
	__VA_ARGS__
	FAULT("magic", d->magic[0] = 'h');
	FAULT("major", d->major_version = 2);
	FAULT("size", d->descriptor_bytes = 512);
	FAULT("record_size", d->record_bytes = 24);
	FAULT("node_size", d->node_bytes = 40);
	FAULT("pointer", d->pointer_bytes = 4);
	FAULT("not_ready", d->tls_mode = 0);
	FAULT("mode", d->tls_mode = 7);
	FAULT("tls_off", d->tls_off = INT64_C(1) << 40);
	FAULT("dtv_module", (d->dtv_module = 5000, d->tls_mode = 2));
	FAULT("registry", (d->registry_addr = 16, d->tls_mode = 3));
	FAULT("registry_head", (d->registry_addr = (uint64_t)(uintptr_t)node, d->tls_mode = 3));
	FAULT("flags", d->flags = 0x100);
	FAULT("capacity", d->node_cap = 1 << 20);
	FAULT("count", d->node_cnt = d->node_cap + 1);
	FAULT("count_zero", d->node_cnt = 0);
	FAULT("shift", d->chunk_shift = 10);
	FAULT("pid", d->pid = 0);
	FAULT("reserved", d->reserved[2] = 1);
	FAULT("chunk", d->chunk_addr[0] = 0);
	FAULT("chunk_unmapped", d->chunk_addr[0] = 4096);
	FAULT("parent", node[2].parent = 2);
	FAULT("kind", node[3].kind = 5);
	FAULT("length", node[1].name_len = 256);
	FAULT("empty", node[1].name_len = 0);
	FAULT("name_addr", node[1].name_addr = 8);
	FAULT("value_addr", node[3].value_addr = 8);
	FAULT("node_flags", node[1].flags = 8);
	FAULT("tag_value", node[1].value_len = 3);
}

/* The block of the executable, module 1, is found by the dynamic vector, and the record is in it. */
static int go_dtv(void)
{
	struct heaptap_descriptor_ *d = &heaptap_scope_v1;
	const char *thread, *vector;
	uint64_t block;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(thread));
	vector = *(const char *const *)(thread + 8);
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
	vector = *(const char *const *)thread;
#endif
	block = *(const uint64_t *)(vector + 16 * 1);
	d->dtv_module = 1;
	d->dtv_off = (uint64_t)(uintptr_t)(thread + d->tls_off) - block;
	d->tls_mode = 2;
	return d->dtv_off < 4096;
}

int main(int argc, char **argv)
{
	heaptap_state state;
	char byte;

	if (argc < 2)
		return 2;
	HEAPTAP_SCOPE("Top", "A");
	HEAPTAP_LABEL("tenant", "acme");
	HEAPTAP_TASK("query", 17);
	state = heaptap_get();
	if (!strcmp(argv[1], "layout")) {
		layout();
		return 0;
	}
	if (!strcmp(argv[1], "bytes")) {
		example(state);
		return 0;
	}
	if (!strcmp(argv[1], "dtv") && !go_dtv())
		return 1;
	break_it(argv[1]);
	if (!strcmp(argv[1], "faults"))
		return 0;
	printf("READY\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
