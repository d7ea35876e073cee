/* SPDX-License-Identifier: MIT */
/* test_closer.c - links that others close: pipes stand for them, whose ends tell. */
#include "unit.h"

#include <poll.h>

#include "guardian/guardian_priv.h"
#include "kernel/attach.h"

#define LINKS 200 /* more than tickets are taken at a time */

/* cnt links, and what sees the end of each. */
static struct attach_links *links_of(int cnt, int *reader)
{
	struct attach_links *links;
	int fds[2];

	assert_int_equal(attach_links_new(&links), 0);
	for (int i = 0; i < cnt; i++) {
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		reader[i] = fds[0];
		if (i % 2)
			assert_int_equal(attach_links_take_member(links, fds[1]), 0);
		else
			assert_int_equal(attach_links_take(links, fds[1]), 0);
	}
	return links;
}

static bool is_closed(int reader)
{
	struct pollfd fd = { .fd = reader, .events = POLLIN };

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLHUP;
}

static bool has_news(const struct closer *c)
{
	struct pollfd fd = { .fd = closer_fd(c), .events = POLLIN };

	return poll(&fd, 1, 5000) == 1;
}

/* Each ticket comes once, and not before its links are closed. */
TEST(test_tickets)
{
	bool is_seen[LINKS] = { false };
	int reader[LINKS], seen_cnt = 0;
	uint64_t tickets[7];
	struct closer *c;

	assert_int_equal(closer_new(&c), 0);
	closer_wait(c); /* for nothing */
	assert_int_equal(closer_take_done(c, tickets, 7), 0);
	for (int i = 0; i < LINKS; i++)
		closer_close(c, links_of(1, &reader[i]), i);
	while (seen_cnt < LINKS) {
		size_t cnt;

		assert_true(has_news(c));
		cnt = closer_take_done(c, tickets, 7);
		for (size_t i = 0; i < cnt; i++) {
			assert_true(tickets[i] < LINKS);
			assert_false(is_seen[tickets[i]]);
			assert_true(is_closed(reader[tickets[i]]));
			is_seen[tickets[i]] = true;
			seen_cnt++;
		}
	}
	assert_int_equal(closer_take_done(c, tickets, 7), 0);
	closer_close(c, NULL, 7); /* nothing is done at once */
	assert_true(has_news(c));
	assert_int_equal(closer_take_done(c, tickets, 7), 1);
	assert_int_equal(tickets[0], 7);
	closer_free(c);
	for (int i = 0; i < LINKS; i++)
		close(reader[i]);
}

TEST(test_free_waits)
{
	int reader[LINKS];
	struct closer *c;

	assert_int_equal(closer_new(&c), 0);
	for (int i = 0; i < LINKS; i += 4)
		closer_close(c, links_of(4, &reader[i]), 1);
	closer_wait(c);
	for (int i = 0; i < LINKS; i++) {
		assert_true(is_closed(reader[i]));
		close(reader[i]);
	}
	closer_close(c, links_of(1, reader), 1); /* and again */
	closer_free(c);
	assert_true(is_closed(reader[0]));
	close(reader[0]);
	closer_free(NULL);
	assert_int_equal(closer_new(&c), 0);
	closer_free(c); /* never used */
}

RUN_TESTS()
