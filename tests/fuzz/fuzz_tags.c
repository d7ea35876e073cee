/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tags.c - everything that a tagged program says: its file, its descriptor, the names of its
 * keys, its labels.
 *
 * An ELF file is scanned as one; of anything else the first byte says what the rest is.
 */
#include "fuzz.h"

#include "base/err.h"
#include "base/strset.h"
#include "elf/elf_file.h"
#include "elf/usdt_notes.h"
#include "heaptap/abi.h"
#include "profile/tag_labels.h"
#include "proc/tag_sources.h"

static void check_notes(struct elf_file *ef)
{
	struct usdt_note *notes;
	size_t cnt, i;
	uint64_t off;

	if (usdt_notes_find(ef, "heaptap", &notes, &cnt))
		return;
	if (!cnt || cnt > USDT_NOTES_CAP)
		abort();
	for (i = 0; i < cnt; i++)
		if (strcmp(notes[i].provider, "heaptap") || strlen(notes[i].args) > 1 << 30 ||
		    elf_file_vaddr_to_off(ef, notes[i].location_vaddr, &off) ||
		    off != notes[i].location_off)
			abort();
	free(notes);
}

static void check_symbol(const struct tls_symbol *sym)
{
	if (sym->place > TLS_PLACE_MODULE_SLOT || sym->block_off < 0 || sym->block_off > INT32_MAX)
		abort();
}

static void check_file(const uint8_t *data, size_t bytes)
{
	struct tag_file f;
	struct elf_file *ef;

	if (elf_file_open_mem(data, bytes, &ef))
		return;
	check_notes(ef);
	if (!tag_file_scan(ef, &f)) {
		if (f.descriptor_cnt > TAG_DESCRIPTORS_CAP ||
		    strlen(f.problem) >= sizeof(f.problem))
			abort();
		if (f.has_otel)
			check_symbol(&f.otel);
		if (f.has_custom)
			check_symbol(&f.custom);
	}
	elf_file_close(ef);
}

static void check_descriptor(const uint8_t *data, size_t bytes)
{
	uint8_t raw[SCOPE_DESCRIPTOR_BYTES] = { 0 };
	struct scope_descriptor d;
	struct err why = { 0 };
	int err;

	memcpy(raw, data, bytes < sizeof(raw) ? bytes : sizeof(raw));
	err = scope_descriptor_parse(raw, &d, &why);
	if (!err && (d.node_cnt > d.node_capacity || d.tls_mode > HT_TLS_REGISTRY))
		abort();
	if ((err == -EPROTO || err == -EBADMSG) != (why.text[0] != '\0'))
		abort();
}

/* Labels, and the key names for them from what follows. */
static void check_labels(const uint8_t *data, size_t bytes)
{
	struct ht_labels *raw = calloc(1, sizeof(*raw));
	struct tag_label labels[TAG_LABELS_CAP];
	struct tag_keys keys = { .cnt = 0 };
	struct strset *strings;
	size_t n = bytes < HT_LABEL_BYTES_CAP ? bytes : HT_LABEL_BYTES_CAP;
	int cnt, i, k;

	if (!raw || strset_new(&strings)) {
		free(raw);
		return;
	}
	if (otel_process_ctx_decode(data, bytes, &keys))
		keys.cnt = 0;
	memcpy(raw->byte, data, n);
	raw->byte_cnt = (uint32_t)n;
	for (k = HT_TAG_SCOPE; k <= HT_TAG_CUSTOM; k++) {
		raw->kind = (uint32_t)k;
		cnt = tag_labels_decode(raw, &keys, strings, labels);
		if (cnt < 0 || cnt > TAG_LABELS_CAP)
			abort();
		for (i = 0; i < cnt; i++)
			if (!*strset_get(strings, labels[i].key_str) ||
			    !*strset_get(strings, labels[i].value_str) ||
			    (i && labels[i].key_str == labels[i - 1].key_str))
				abort();
	}
	tag_keys_release(&keys);
	strset_free(strings);
	free(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!bytes)
		return 0;
	if (data[0] == 0x7f)
		check_file(data, bytes);
	else if (data[0] % 2)
		check_descriptor(data + 1, bytes - 1);
	else
		check_labels(data + 1, bytes - 1);
	return 0;
}
