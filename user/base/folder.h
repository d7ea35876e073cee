/* SPDX-License-Identifier: MIT */
/*
 * folder.h - folders that heaptap writes to: opened once, and looked at for who else rules there.
 *
 * Whoever can write to a folder can change what is made in it. One that belongs to somebody else than root and
 * the user, or that others can write to, is a stranger's. The sticky bit (/tmp) makes it safe for files
 * of random names: each can change only what is his own. Who became root by sudo is no stranger.
 *
 * For root the way there counts, too: whoever rules a folder on it, or has laid a link there, can say where
 * it ends. What a link leads through that is root's or the user's own is not looked at.
 */
#ifndef HT_BASE_FOLDER_H
#define HT_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum folder_rule {
	FOLDER_ANY,
	FOLDER_SHARED, /* for root: no stranger's, but it may be sticky; for others any */
	FOLDER_OURS, /* for everybody: nobody else can write to it; made when it is not there */
};

/* A descriptor: O_PATH, of FOLDER_OURS O_RDONLY. -EPERM: it is against the rule, and why is what is wrong ("the folder '/x' belongs
 * to user 1000, who can change what is written there"). -errno: as strerror() says. */
int folder_open(const char *path, enum folder_rule rule, int *ret_fd, struct err *why);
/* Is it no stranger's? */
bool folder_is_safe(int fd);

#endif
