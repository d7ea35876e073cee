/* SPDX-License-Identifier: MIT */
/* top_messages.c - see top_priv.h. */
#include "record/top_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

#define TAIL_BYTES 1024 /* searched for the last line */
#define SAID_BYTES 65536 /* of all messages, the last ones */

struct top_messages {
	int fd, stderr_fd;
};

int top_messages_begin(struct top_messages **ret)
{
	struct top_messages *m = calloc(1, sizeof(*m));
	int err = 0;

	if (!m)
		return -ENOMEM;
	m->fd = memfd_create("messages", MFD_CLOEXEC);
	m->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (m->fd < 0 || m->stderr_fd < 0 || fcntl(m->fd, F_SETFL, O_APPEND) ||
	    dup2(m->fd, STDERR_FILENO) < 0)
		err = -errno;
	if (err)
		top_messages_end(m);
	else
		*ret = m;
	return err;
}

/* Read the last bytes; return their number. */
static size_t read_tail(const struct top_messages *m, char *buf, size_t bytes)
{
	struct stat st;
	ssize_t n;

	if (fstat(m->fd, &st))
		return 0;
	n = pread(m->fd, buf, bytes, st.st_size > (off_t)bytes ? st.st_size - (off_t)bytes : 0);
	return n > 0 ? (size_t)n : 0;
}

static void say_all(const struct top_messages *m)
{
	char *text = malloc(SAID_BYTES), *from = text, *line;
	size_t n = text ? read_tail(m, text, SAID_BYTES) : 0;
	off_t gone = lseek(m->fd, 0, SEEK_END) - (off_t)n;

	line = gone > 0 && n ? memchr(text, '\n', n) : NULL;
	if (line) /* begin at a whole line */
		from = line + 1;
	gone += from - text;
	n -= (size_t)(from - text);
	if (gone > 0)
		log_warn("top: the first %lld bytes of the messages are left out", (long long)gone);
	write_all(STDERR_FILENO, from, n);
	free(text);
}

void top_messages_end(struct top_messages *m)
{
	if (!m)
		return;
	if (m->stderr_fd >= 0) {
		dup2(m->stderr_fd, STDERR_FILENO);
		close(m->stderr_fd);
	}
	if (m->fd >= 0) {
		say_all(m);
		close(m->fd);
	}
	free(m);
}

char *top_messages_last(struct top_messages *m, char *buf, size_t buf_bytes)
{
	static const char who[] = "heaptap: ";
	char text[TAIL_BYTES + 1], *line;
	size_t n = read_tail(m, text, TAIL_BYTES);

	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (!strncmp(line, who, sizeof(who) - 1))
		line += sizeof(who) - 1;
	n = strlen(line) < buf_bytes ? strlen(line) : buf_bytes - 1;
	memcpy(buf, line, n);
	buf[n] = '\0';
	return buf;
}
