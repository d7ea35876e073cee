/* SPDX-License-Identifier: MIT */
/* What is said while heaptap top draws: kept, the last line shown, and said at its end, or how much of it is missing. */
#include "unit.h"

#include <sys/mman.h>

#include "record/top_priv.h"

#define LINE_BYTES 100

static struct top_messages *m;
static int said_fd, stderr_fd; /* what stands for the terminal; the real standard error */

static int set_up(void **state)
{
	stderr_fd = dup(STDERR_FILENO);
	said_fd = memfd_create("said", 0);
	if (stderr_fd < 0 || said_fd < 0 || dup2(said_fd, STDERR_FILENO) < 0)
		return -1;
	return top_messages_begin(&m);
}

static int tear_down(void **state)
{
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(said_fd);
	return 0;
}

/* "line 0007 ....\n" */
static void say_lines(int cnt)
{
	char line[LINE_BYTES + 1];

	for (int i = 0; i < cnt; i++) {
		snprintf(line, sizeof(line), "line %04d %*s\n", i, LINE_BYTES - 11, ".");
		assert_int_equal(write(STDERR_FILENO, line, LINE_BYTES), LINE_BYTES);
	}
}

static const char *end(void)
{
	static char text[200000];
	ssize_t n;

	top_messages_end(m);
	dup2(stderr_fd, STDERR_FILENO);
	n = pread(said_fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

TEST_WITH(all_is_said_at_the_end, set_up, tear_down)
{
	char last[64];
	const char *text;

	say_lines(600);
	dprintf(STDERR_FILENO, "heaptap: the last\n");
	assert_string_equal(top_messages_last(m, last, sizeof(last)), "the last");
	assert_int_equal(lseek(said_fd, 0, SEEK_END), 0); /* not before */
	text = end();
	assert_int_equal(strlen(text), 600 * LINE_BYTES + strlen("heaptap: the last\n"));
	assert_memory_equal(text, "line 0000 ", 10);
	assert_omits(text, "left out");
}

TEST_WITH(what_is_missing_is_said, set_up, tear_down)
{
	const char *text, *first;
	char head[128];
	int cnt = 65536 / LINE_BYTES;

	say_lines(1000);
	text = end();
	first = strstr(text, "line ");
	assert_non_null(first);
	assert_int_equal(strlen(first), cnt * LINE_BYTES); /* whole lines, the last ones */
	snprintf(head, sizeof(head), "line %04d ", 1000 - cnt);
	assert_memory_equal(first, head, strlen(head));
	snprintf(head, sizeof(head), "the first %d bytes of the messages are left out",
		 (1000 - cnt) * LINE_BYTES);
	assert_says(text, head);
	assert_true(strstr(text, head) < first);
}

TEST_WITH(nothing_is_nothing, set_up, tear_down)
{
	char last[64];

	assert_string_equal(top_messages_last(m, last, sizeof(last)), "");
	assert_string_equal(end(), "");
}

RUN_TESTS()
