/* SPDX-License-Identifier: MIT */
/*
 * folder.h - folders that heaptap writes to: opened once, and checked for who else can change them.
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

#include <stdbool.h>
#include <stddef.h>

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

#endif
