/* SPDX-License-Identifier: MIT */
/*
 * keyed_hash.h - a hash for tables whose keys come from files and processes.
 *
 * Who chooses the keys must not be able to make them meet in one slot: 40 000 such ids took five seconds instead of a
 * fiftieth of one. So the hash has a key of its own in each process, which nobody outside knows. It differs from run to run:
 * nothing that is written may depend on it.
 */
#ifndef HT_BASE_KEYED_HASH_H
#define HT_BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t keyed_hash(const void *p, size_t n);

/* SipHash-1-3 (Aumasson and Bernstein 2012), for keyed_hash() and its test. */
uint64_t siphash13(const uint64_t key[2], const void *p, size_t n);

#endif
