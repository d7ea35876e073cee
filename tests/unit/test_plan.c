/* SPDX-License-Identifier: MIT */
/* test_plan.c - the choice between the ways to attach, and whose a definition is. */
#include "unit.h"

#include "kernel/uprobe_events.h"
#include "track/policy.h"

/* As of the machine that the table in plan.c is from. */
static const struct plan_costs costs = { 455, 245 };

static struct plan_input input(size_t process_cnt, enum sharing now)
{
	return (struct plan_input){
		.process_cnt = process_cnt,
		.now = now,
		.has_event = true,
		.has_session = true,
		.costs = costs,
	};
}

/* A pair of the table's allocation and free, per hit; within 15 %. */
static void assert_near(double got, double alloc_ns, double free_ns)
{
	double want = (alloc_ns + free_ns) / 2;

	if (got < want * 0.85 || got > want * 1.15)
		fail_msg("%.0f ns, measured were %.0f ns", got, want);
}

TEST(test_model)
{
	static const struct {
		size_t others;
		double session_ns, multi_ns, return_event_ns, event_ns;
	} table[] = {
		{ 0, 460, 451, 727, 489 },	{ 1, 744, 506, 742, 499 },
		{ 10, 1331, 783, 745, 495 },	{ 50, 3872, 1828, 853, 592 },
		{ 100, 7017, 3209, 1049, 788 },
	};

	each_case(c, table) {
		const struct plan_input in = input(c->others + 1, SHARING_AUTO);

		assert_near(plan_hit_ns(&in, SHARING_OWN), c->session_ns, c->multi_ns);
		/* An allocation has an entry probe too, with a list of its own. */
		assert_near(plan_hit_ns(&in, SHARING_EVENT),
			    c->return_event_ns + c->event_ns - table[0].event_ns, c->event_ns);
		assert_near(plan_hit_ns(&in, SHARING_ALL), 460, 460);
	}
}

/* One place in the list is worth so many hits a second. */
static const double A_PLACE = 1e6 / (1.5 * 0.0065 * 455);

TEST(test_front)
{
	const struct plan_sharer same[] = { { 1e6, 3 }, { 1e6, 1 }, { 1e6, 2 } };
	const struct plan_sharer idle[] = { { 10, 3 }, { 20, 1 }, { 30, 2 } };
	struct plan_sharer s[] = { { 0, 4 }, { A_PLACE, 3 }, { A_PLACE, 1 }, { 0, 2 } };

	/* Nobody gains what another does not lose, or nothing that counts. */
	assert_int_equal(plan_front(same, 3, 455), 3);
	assert_int_equal(plan_front(idle, 3, 455), 3);
	assert_int_equal(plan_front(NULL, 0, 455), 0);
	/* Each would gain a place, and the one at the end two more but for the other's loss. */
	s[2].hits_per_s *= 1.1;
	assert_int_equal(plan_front(s, 4, 455), 2);
	s[2].turn = 5;
	s[1].hits_per_s *= 1.02; /* would pass an idle one, but a busier one as well */
	s[0].turn = 6;
	assert_int_equal(plan_front(s, 4, 455), 2);
	s[2].turn = 7;
	assert_int_equal(plan_front(s, 4, 455), 4);
	/* On a slower machine less is enough. */
	s[1].hits_per_s *= 0.7;
	s[2].hits_per_s = 0;
	assert_int_equal(plan_front(s, 4, 455), 1);
	s[1].hits_per_s = A_PLACE * 0.4;
	assert_int_equal(plan_front(s, 4, 455), 4);
	assert_int_equal(plan_front(s, 4, 4550), 1);
}

TEST(test_choice)
{
	struct plan_input in = input(1, SHARING_AUTO);

	assert_int_equal(plan_choose(&in), SHARING_OWN);
	in = input(30, SHARING_AUTO);
	assert_int_equal(plan_choose(&in), SHARING_EVENT);
	in.has_event = false;
	assert_int_equal(plan_choose(&in), SHARING_OWN);
	/* Whoever maps the file may pay: then nothing else is as good. */
	in.is_all_agreed = true;
	assert_int_equal(plan_choose(&in), SHARING_ALL);
	in = input(1, SHARING_OWN);
	in.is_all_agreed = true;
	assert_int_equal(plan_choose(&in), SHARING_ALL);
	/* That ends when it is agreed to no more. */
	in = input(1, SHARING_ALL);
	assert_int_equal(plan_choose(&in), SHARING_OWN);
	in = input(30, SHARING_ALL);
	assert_int_equal(plan_choose(&in), SHARING_EVENT);
}

TEST(test_wish)
{
	struct plan_input in = input(1, SHARING_AUTO);

	in.wanted = SHARING_EVENT;
	assert_int_equal(plan_choose(&in), SHARING_EVENT);
	in.has_event = false;
	assert_int_equal(plan_choose(&in), SHARING_OWN);
	in.wanted = SHARING_ALL; /* never against an agreement */
	assert_int_equal(plan_choose(&in), SHARING_OWN);
	in.is_all_agreed = true;
	assert_int_equal(plan_choose(&in), SHARING_ALL);
	in.wanted = SHARING_OWN;
	in.process_cnt = 300;
	assert_int_equal(plan_choose(&in), SHARING_OWN);
}

/* At every number of processes at most one of the ways is left when it is the current one, and there
 * are numbers at which both are kept. */
TEST(test_hysteresis)
{
	size_t kept_cnt = 0, first_event = 0, last_own = 0;

	for (size_t n = 1; n <= 400; n++) {
		const struct plan_input own = input(n, SHARING_OWN),
					event = input(n, SHARING_EVENT);
		enum sharing from_own = plan_choose(&own), from_event = plan_choose(&event);

		assert_false(from_own == SHARING_EVENT && from_event == SHARING_OWN);
		kept_cnt += from_own == SHARING_OWN && from_event == SHARING_EVENT;
		if (from_own == SHARING_EVENT && !first_event)
			first_event = n;
		if (from_event == SHARING_OWN)
			last_own = n;
	}
	assert_true(kept_cnt > 0);
	assert_true(last_own >= 1 && last_own < first_event);
	assert_true(first_event <= 8);
}

/* Units cancel: a machine on which all is three times as dear chooses the same. */
TEST(test_scale)
{
	for (size_t n = 1; n <= 50; n++) {
		struct plan_input in = input(n, SHARING_OWN), slow = in, unmeasured = in;

		slow.costs.hit_ns *= 3;
		slow.costs.return_ns *= 3;
		unmeasured.costs = (struct plan_costs){ 0, 0 };
		assert_int_equal(plan_choose(&in), plan_choose(&slow));
		assert_int_equal(plan_choose(&in), plan_choose(&unmeasured));
		assert_true(plan_hit_ns(&slow, SHARING_OWN) > 2.9 * plan_hit_ns(&in, SHARING_OWN));
	}
}

TEST(test_names)
{
	static const char *const names[] = { "auto", "own", "event", "all" };

	for (enum sharing w = SHARING_AUTO; w <= SHARING_ALL; w++)
		assert_string_equal(sharing_name(w), names[w]);
}

TEST(test_owner)
{
	static const char *const others[] = {
		"p:probes/p_malloc /usr/lib/libc.so.6:0x0000000000098860",
		"p:heaptap/e0 /proc/self/fd/7:0x1",
		"p:heaptap_1_2_3", /* no name */
		"p:heaptap_1_2/e0 /x:0x1",
		"p:heaptap_0_2_3/e0 /x:0x1",
		"p:heaptap_-1_2_3/e0 /x:0x1",
		"p:heaptap_99999999999_2_3/e0 /x:0x1",
		"p:heaptap_1_99999999999999999999999_3/e0 /x:0x1",
		"p:heaptap_1_2_3x/e0 /x:0x1",
		"p:heaptap__2_3/e0 /x:0x1",
		"heaptap_1_2_3/e0",
		"",
		":",
	};
	const char *line = "r:heaptap_412_90345_4026531836/e17 /proc/self/fd/9:0x98860\n", *name;
	struct uprobe_owner owner;
	size_t name_len;

	assert_int_equal(uprobe_event_owner(line, &owner, &name, &name_len), 0);
	assert_int_equal(owner.pid, 412);
	assert_int_equal(owner.start_time_ticks, 90345);
	assert_int_equal(owner.pid_namespace, 4026531836);
	assert_int_equal(name_len, strlen("heaptap_412_90345_4026531836/e17"));
	assert_memory_equal(name, "heaptap_412_90345_4026531836/e17", name_len);
	each_case(c, others)
		if (uprobe_event_owner(*c, &owner, &name, &name_len) != -ENOENT)
			fail_msg("'%s' is taken for ours", *c);
}

RUN_TESTS()
