/* SPDX-License-Identifier: MIT */
/* write_all.h - write all bytes to a descriptor, with as many calls as necessary. */
#ifndef HT_BASE_WRITE_ALL_H
#define HT_BASE_WRITE_ALL_H

#include <stddef.h>

/* After an error (-errno) a part of the bytes may have been written. */
int write_all(int fd, const void *data, size_t bytes);

#endif
