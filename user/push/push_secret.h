/* SPDX-License-Identifier: MIT */
/* push_secret.h - reads a token or password from a file that only its owner and group may read. */
#ifndef HT_PUSH_SECRET_H
#define HT_PUSH_SECRET_H

struct err;

#define PUSH_SECRET_MAX 4096

/* Read the first line, without blanks at its end. -errno with a sentence in why: -EACCES when others may read or
 * write the file, -EINVAL when it is empty, too long, or has control characters. */
int push_secret_read(const char *path, char ret[PUSH_SECRET_MAX], struct err *why);

#endif
