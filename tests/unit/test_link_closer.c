/* SPDX-License-Identifier: MIT */
/* test_link_closer.c - links that others close: pipes stand for them, whose ends tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/attach.h"
#include "kernel/link_closer.h"

#define LINKS 40

/* cnt links, and what sees the end of each. */
static struct attach_links *links_of(int cnt, int *reader)
{
	struct attach_links *links;
	int fds[2];

	assert_int_equal(attach_links_new(&links), 0);
	for (int i = 0; i < cnt; i++) {
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		reader[i] = fds[0];
		assert_int_equal(attach_links_take(links, fds[1]), 0);
	}
	return links;
}

static bool is_closed(int reader)
{
	struct pollfd fd = { .fd = reader, .events = POLLIN };

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLHUP;
}

static void test_all_are_closed_when_waited_for(void **state)
{
	struct link_closer *c;
	int reader[LINKS];

	(void)state;
	assert_int_equal(link_closer_new(&c), 0);
	link_closer_wait(c); /* for nothing */
	for (int i = 0; i < LINKS; i += 4)
		link_closer_take(c, links_of(4, &reader[i]));
	link_closer_wait(c);
	for (int i = 0; i < LINKS; i++) {
		assert_true(is_closed(reader[i]));
		close(reader[i]);
	}
	link_closer_take(c, links_of(1, reader)); /* and again */
	link_closer_wait(c);
	assert_true(is_closed(reader[0]));
	close(reader[0]);
	link_closer_free(c);
}

static void test_free_waits(void **state)
{
	struct link_closer *c;
	int reader[LINKS];

	(void)state;
	assert_int_equal(link_closer_new(&c), 0);
	link_closer_take(c, NULL);
	for (int i = 0; i < LINKS; i++)
		link_closer_take(c, links_of(1, &reader[i]));
	link_closer_free(c);
	for (int i = 0; i < LINKS; i++) {
		assert_true(is_closed(reader[i]));
		close(reader[i]);
	}
	link_closer_free(NULL);
	assert_int_equal(link_closer_new(&c), 0);
	link_closer_free(c); /* never used */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_closed_when_waited_for),
		cmocka_unit_test(test_free_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
