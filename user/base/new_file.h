/* SPDX-License-Identifier: MIT */
/*
 * new_file.h - makes a file that stays: there whole or not at all, for its owner only.
 *
 * The file is made through the folder's descriptor, so that no other folder can be put in its place. It has a random
 * name and is created anew (O_EXCL), so that nothing that somebody prepared is opened. Then it is renamed, which
 * replaces a link and does not follow it.
 */
#ifndef HT_BASE_NEW_FILE_H
#define HT_BASE_NEW_FILE_H

#include <stdbool.h>

#define NEW_FILE_NAME_BYTES 48

struct new_file {
	int folder_fd; /* the caller's */
	int fd; /* -1: none */
	char name[NEW_FILE_NAME_BYTES]; /* temporary, until it is committed; "": none */
};

/* Create PREFIX, a random number, ".tmp". prefix: at most 24 bytes; it tells whose file it was if it is left behind. */
int new_file_open(int folder_fd, const char *prefix, struct new_file *ret);
/* The file is complete: close it and give it its name. -EEXIST: the name is taken and is not replaced (-EISDIR: by a
 * folder, which is never replaced); another name may be tried. */
int new_file_commit(struct new_file *f, const char *name, bool replaces);
/* Remove a file that was not committed. */
void new_file_drop(struct new_file *f);

/* Is this the name of a file that a killed process left behind? */
bool new_file_is_left(const char *name, const char *prefix);

#endif
