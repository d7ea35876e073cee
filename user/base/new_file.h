/* SPDX-License-Identifier: MIT */
/*
 * new_file.h - how heaptap makes a file that stays: there whole or not at all, for its owner only.
 *
 * In the folder's descriptor, so that no other folder can be put in its place; under a random name that is
 * made anew (O_EXCL), so that nothing that somebody has laid ready is opened; then renamed, which replaces a
 * link and does not follow it.
 */
#ifndef HT_BASE_NEW_FILE_H
#define HT_BASE_NEW_FILE_H

#include <stdbool.h>

#define NEW_FILE_NAME_BYTES 48

struct new_file {
	int folder_fd; /* the caller's */
	int fd; /* -1: none */
	char name[NEW_FILE_NAME_BYTES]; /* until it has its own; "": none */
};

/* PREFIX, a random number, ".tmp". prefix: at most 24 bytes, which tells whose it was when it is left. */
int new_file_open(int folder_fd, const char *prefix, struct new_file *ret);
/* It is whole: closed, and given its name. -EEXIST: there is something of that name, and it is not replaced
 * (nor is a folder: -EISDIR); another name may be tried. */
int new_file_commit(struct new_file *f, const char *name, bool replaces);
/* Nothing is left of one that was not committed. */
void new_file_drop(struct new_file *f);

/* The name of one that a process left which was killed? */
bool new_file_is_left(const char *name, const char *prefix);

#endif
