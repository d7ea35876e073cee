/* SPDX-License-Identifier: MIT */
/*
 * tag_labels.h - the labels that a program put on a thread, from the raw bytes that were read.
 *
 * The bytes are struct ht_labels (abi.h). Formats that number their keys need a table of names.
 */
#ifndef HT_PROFILE_TAG_LABELS_H
#define HT_PROFILE_TAG_LABELS_H

#include <stddef.h>
#include <stdint.h>

struct ht_labels;
struct strset;

/* Key indexes are one byte. */
#define TAG_KEYS_CAP 256
/* Distinct keys of one set; what is beyond (no sound writer gets there) is left out. */
#define TAG_LABELS_CAP 256

struct tag_keys {
	char *names[TAG_KEYS_CAP]; /* malloc'ed; NULL or "": not known */
	size_t cnt;
};
void tag_keys_release(struct tag_keys *k);
/* Bit i: key i, of the first 32, names the id of a trace or span. */
uint32_t tag_keys_ids(const struct tag_keys *k);

/* Ids of a strset, so both are valid UTF-8 and never "". */
struct tag_label {
	int64_t key_str, value_str;
};

/*
 * Writes at most TAG_LABELS_CAP labels with distinct keys, sorted by key, into ret; returns how
 * many or -ENOMEM. keys may be NULL and is not used for HT_TAG_CUSTOM. Key 7 that has no name in
 * the table is "key-7"; a key or value of no bytes is "(empty)". Bytes that end in the middle of
 * an entry end the set before it. Keys that name the id of a trace or span are left out.
 */
int tag_labels_decode(const struct ht_labels *raw, const struct tag_keys *keys,
		      struct strset *strings, struct tag_label *ret);

#endif
