/* SPDX-License-Identifier: MIT */
/*
 * folder.h - folders that heaptap writes to, and the files that it makes there. A folder is opened once, and checked
 * for who else can change it.
 *
 * Whoever can write to a folder can change what is made in it. A folder is a stranger's if its owner is neither root
 * nor the user, or if others can write to it. The sticky bit (/tmp) makes such a folder safe for files with random
 * names: each user can change only his own files. A user who became root by sudo is no stranger.
 *
 * For root the path counts, too: whoever can change a folder on it, or owns a link on it, can decide where it ends. The
 * path through the target of a link that belongs to root or to the user is not checked.
 */
#ifndef HT_BASE_FOLDER_H
#define HT_BASE_FOLDER_H

#include "base/std.h"

struct err;

enum folder_rule {
	FOLDER_ANY,
	FOLDER_SHARED, /* root: no stranger's, but it may be sticky; other users: any */
	FOLDER_OURS, /* for all users: nobody else can write to it; made if missing */
};

/* Return a descriptor: O_PATH, for FOLDER_OURS O_RDONLY. -EPERM: the folder breaks the rule; why says how ("the
 * folder '/x' belongs to user 1000, who can change what is written there"). -errno: as strerror() says. */
int folder_open(const char *path, enum folder_rule rule, int *ret_fd, struct err *why);
/* Is the folder no stranger's? */
bool folder_is_safe(int fd);

/*
 * A file that stays: there whole or not at all, for its owner only.
 *
 * The file is made through the folder's descriptor, so that no other folder can be put in its place. It has a random
 * name and is created anew (O_EXCL), so that nothing that somebody prepared is opened. Then it is renamed, which
 * replaces a link and does not follow it.
 */
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
