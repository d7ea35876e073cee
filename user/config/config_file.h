/* SPDX-License-Identifier: MIT */
/* config_file.h - the bytes of a configuration file, if it can be trusted. */
#ifndef HT_CONFIG_FILE_H
#define HT_CONFIG_FILE_H

#include <stddef.h>

#define CONFIG_FILE_BYTES_CAP (1 << 20)

/*
 * All of a regular file that nobody but its owner (root, or who runs this) may write: it says where
 * data is sent. *ret is malloc'ed. On failure why has a sentence for the user.
 */
int config_file_read(const char *path, char **ret, size_t *ret_bytes, char *why, size_t why_bytes);

#endif
