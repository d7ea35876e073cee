/* SPDX-License-Identifier: MIT */
/*
 * tag_sources.c - finds where the threads of a process say what they allocate for.
 *
 * Three formats are known: our own (include/heaptap/TAGS.md), whose descriptor is the semaphore of a USDT and
 * has the rest; and two with an exported thread-local pointer, OpenTelemetry's and Polar Signals'. For a
 * pointer in a library the loader's slots are read (tls_symbol.c says which):
 *
 * - a word with the offset from the thread pointer;
 * - {module id, offset}: a block, to be looked up in each thread's dynamic vector;
 * - a TLS descriptor {function, argument}. Which function it is cannot be told from outside (glibc and musl
 *   have their own), but the arguments differ: for a block at a fixed place the argument is the offset, a small
 *   number, negative on x86-64, positive on arm64; for any other block it is the address of {module id, offset}
 *   in both libraries. glibc before 2.34 writes the descriptor at the first use; until then the argument is the
 *   address of the relocation, whose first word is the slot's address.
 *
 * A slot without a plausible value has not been written by the loader yet. Mappings appear before relocations
 * are done, so this is pending and not an error.
 */
#include "proc/tag_sources.h"

#include <elf.h>

#include "elf/usdt_notes.h"
#include "proc/process.h"

#define POINTER_BYTES 8
/* Limits of the distance between the thread pointer and a block at a fixed place. On arm64, where offsets are
 * positive like addresses, this tells the two apart: no program is linked below 4 MiB. */
#ifdef __x86_64__
#define STATIC_OFF_MIN (-(1LL << 30))
#define STATIC_OFF_MAX (-POINTER_BYTES)
#else
#define STATIC_OFF_MIN 16
#define STATIC_OFF_MAX (4LL << 20)
#endif
#define MODULES_CAP 4096 /* as in BPF */

static void add_descriptor(struct tag_file *f, uint64_t vaddr)
{
	uint32_t i;

	for (i = 0; i < f->descriptor_cnt; i++)
		if (f->descriptor_vaddr[i] == vaddr)
			return;
	if (f->descriptor_cnt < TAG_DESCRIPTORS_CAP)
		f->descriptor_vaddr[f->descriptor_cnt++] = vaddr;
}

static int scan_descriptors(struct elf_file *ef, struct tag_file *f)
{
	struct usdt_note *notes;
	size_t cnt, i;
	int err = usdt_notes_find(ef, "heaptap", &notes, &cnt);

	if (err)
		return err == -ENOENT ? 0 : err;
	for (i = 0; i < cnt; i++)
		if (!strcmp(notes[i].name, "tls_v1") && notes[i].semaphore_vaddr)
			add_descriptor(f, notes[i].semaphore_vaddr);
	free(notes);
	return 0;
}

static bool scan_pointer(struct elf_file *ef, struct tag_file *f, uint32_t kind, const char *name,
			 struct tls_symbol *ret)
{
	int err = tls_symbol_find(ef, name, ret);

	if (err == -ENODATA) {
		f->problem_kind = kind;
		snprintf(f->problem, sizeof(f->problem),
			 "it has %s, but no record of where threads keep it", name);
	}
	return !err;
}

int tag_file_scan(struct elf_file *ef, struct tag_file *ret)
{
	struct tag_file f = { 0 };
	uint32_t version;
	int err = scan_descriptors(ef, &f);

	if (err)
		return err;
	f.has_otel = scan_pointer(ef, &f, HT_TAG_OTEL, "otel_thread_ctx_v1", &f.otel);
	f.has_custom = scan_pointer(ef, &f, HT_TAG_CUSTOM, "custom_labels_current_set", &f.custom);
	if (f.has_custom &&
	    (elf_data_symbol_u32(ef, "custom_labels_abi_version", &version) || version != 1)) {
		f.problem_kind = HT_TAG_CUSTOM;
		snprintf(f.problem, sizeof(f.problem),
			 "its custom labels have an unknown ABI version (known: 1)");
		f.has_custom = false;
	}
	if (!f.descriptor_cnt && !f.has_otel && !f.has_custom && !*f.problem)
		return -ENOENT;
	*ret = f;
	return 0;
}

/* 0, -EAGAIN: not plausible. */
static int set_offset(struct ht_tag_source *s, int64_t off)
{
	if (off < STATIC_OFF_MIN || off > STATIC_OFF_MAX)
		return -EAGAIN;
	s->tls_mode = HT_TLS_STATIC;
	s->tls_off = off;
	return 0;
}

static int set_module(struct ht_tag_source *s, uint64_t module, uint64_t off)
{
	if (!module || module > MODULES_CAP || off > INT32_MAX)
		return -EAGAIN;
	s->tls_mode = HT_TLS_DTV;
	s->tls_module = module;
	s->tls_off = (int64_t)off;
	return 0;
}

/* Turn an offset of the slot's symbol into one of the variable. The file and the memory may contain anything. */
static int64_t rebased(uint64_t off, const struct tls_symbol *sym)
{
	return (int64_t)(off - (uint64_t)sym->slot_block_off + (uint64_t)sym->block_off);
}

static int read_descriptor(struct reader *reader, pid_t tid, const struct tls_symbol *sym,
			   uint64_t arg, struct ht_tag_source *s)
{
	uint64_t pair[2];
	int err = set_offset(s, rebased(arg, sym));

	if (!err || !arg)
		return err;
	err = process_memory_read(reader, tid, arg, pair, sizeof(pair));
	if (err)
		return err;
	if (pair[0] == sym->slot_vaddr)
		return -EAGAIN; /* the relocation */
	return set_module(s, pair[0], (uint64_t)rebased(pair[1], sym));
}

/* 0, -EAGAIN: not ready, or an error of process_memory_read(). */
static int read_place(struct reader *reader, pid_t tid, const struct tls_symbol *sym, uint64_t bias,
		      struct ht_tag_source *s)
{
	uint64_t slot[2];
	int err;

	if (sym->place == TLS_PLACE_OFFSET)
		return set_offset(s, sym->off);
	err = process_memory_read(reader, tid, sym->slot_vaddr + bias, slot,
				  sym->place == TLS_PLACE_OFFSET_SLOT ? 8 : 16);
	if (err)
		return err;
	switch (sym->place) {
	case TLS_PLACE_OFFSET_SLOT:
		return set_offset(s, rebased(slot[0], sym));
	case TLS_PLACE_DESC_SLOT:
		return read_descriptor(reader, tid, sym, slot[1], s);
	default:
		return set_module(s, slot[0],
				  sym->is_own_slot ? slot[1] : (uint64_t)sym->block_off);
	}
}

static void add_source(struct tag_sources *ret, const struct ht_tag_source *s)
{
	if (ret->cnt < HT_TAG_SOURCES_CAP)
		ret->source[ret->cnt++] = *s;
}

/* Errors about the whole process, not about one of its addresses. */
static bool is_fatal(int err)
{
	return err == -ESRCH || err == -EPERM || err == -EACCES || err == -ENOMEM;
}

static int add_pointer(struct reader *reader, pid_t tid, uint32_t kind,
		       const struct tls_symbol *sym, uint64_t bias, uint32_t dtv_shift,
		       struct tag_sources *ret)
{
	struct ht_tag_source s = { .kind = kind, .dtv_shift = dtv_shift };
	int err = read_place(reader, tid, sym, bias, &s);

	if (!err)
		add_source(ret, &s);
	else if (!is_fatal(err))
		ret->is_pending = true;
	return is_fatal(err) ? err : 0;
}

static int add_scope(struct reader *reader, pid_t tid, uint64_t addr, uint32_t dtv_shift,
		     struct tag_sources *ret)
{
	struct ht_tag_source s = { .kind = HT_TAG_SCOPE,
				   .desc_addr = addr,
				   .dtv_shift = dtv_shift };
	struct scope_descriptor d;
	int err = scope_descriptor_read(reader, tid, addr, &d, &ret->problem);

	if (!err) {
		/* The process was started long ago and may have paused since. */
		s.flags = d.flags & HT_TAG_PAUSES_ALL;
		add_source(ret, &s);
	} else if (!is_fatal(err) && err != -EPROTO) {
		ret->is_pending = true;
	}
	return is_fatal(err) ? err : 0;
}

int tag_sources_read(struct reader *reader, pid_t tid, const struct tag_file *file, uint64_t bias,
		     uint32_t dtv_shift, struct tag_sources *ret)
{
	struct tag_sources r = { 0 };
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < file->descriptor_cnt; i++)
		err = add_scope(reader, tid, file->descriptor_vaddr[i] + bias, dtv_shift, &r);
	if (!err && file->has_otel)
		err = add_pointer(reader, tid, HT_TAG_OTEL, &file->otel, bias, dtv_shift, &r);
	if (!err && file->has_custom)
		err = add_pointer(reader, tid, HT_TAG_CUSTOM, &file->custom, bias, dtv_shift, &r);
	if (!err)
		*ret = r;
	return err;
}

static bool is_musl(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	/* musl's library is its loader, and is named after either; glibc's libc.so is a text file. */
	return !strncmp(name, "ld-musl-", 8) || !strncmp(name, "libc.musl-", 10) ||
	       !strcmp(name, "libc.so");
}

uint32_t tag_dtv_shift(const struct proc_maps *maps)
{
	const struct proc_map *m;

	vec_each(&maps->maps, m)
		if (is_musl(m->path))
			return 3;
	return 4;
}
