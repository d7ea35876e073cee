/* SPDX-License-Identifier: MIT */
/*
 * gunzip.h - the bytes of a profile, unpacked when they are gzip-compressed, and a sentence about input that is plainly
 * something else.
 */
#ifndef HT_PROFILE_GUNZIP_H
#define HT_PROFILE_GUNZIP_H

#include <stddef.h>
#include <stdint.h>

#include "profile/pprof.h"

struct err;

/* A profile of a million distinct deep stacks has about 200 MB. Input over GUNZIP_BYTES_MAX, packed or unpacked, is
 * refused, so that it cannot eat the machine's memory. So is input that unpacks to more than 16 MiB and 32 times its
 * size: profiles unpack to 4 to 20 times (a 1 MB file of empty messages took 4.9 GB). */
#define GUNZIP_BYTES_MAX ((size_t)1 << 30)

/* Unpack data if it is packed. *ret_owned is to be freed, or NULL when *ret_data is data itself. -EBADMSG with *why,
 * -ENOMEM. max is GUNZIP_BYTES_MAX except in tests. */
int gunzip_mem(const void *data, size_t bytes, size_t max, uint8_t **ret_owned,
	       const uint8_t **ret_data, size_t *ret_bytes, struct err *why);
/* Read all of fd, without unpacking. */
int gunzip_read_fd(int fd, size_t max, uint8_t **ret, size_t *ret_bytes, struct err *why);

#endif
