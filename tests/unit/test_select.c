/* SPDX-License-Identifier: MIT */
/* Which processes `heaptap serve` follows. */
#include "unit.h"

#include "base/err.h"
#include "proc/select.h"
#include "proc/cgroup.h"

/* A list of one text, which nobody frees. */
#define ONE(text)                                                        \
	{                                                                \
		.data = (char *[]){ (char *)(text) }, .cnt = 1, .cap = 1 \
	}
#define TWO(a, b)                                                                  \
	{                                                                          \
		.data = (char *[]){ (char *)(a), (char *)(b) }, .cnt = 2, .cap = 2 \
	}

static bool matches(const struct select_options *o, const struct select_candidate *c)
{
	struct select_rules *r = NULL;
	struct err why = { 0 };
	bool is;

	assert_int_equal(select_rules_new(o, &r, &why), 0);
	is = select_matches(r, c);
	select_rules_free(r);
	return is;
}

static const struct select_candidate redis = {
	.comm = "redis-server",
	.exe = "/usr/bin/redis-check-rdb",
	.uid = 105,
	.rss_bytes = 10 << 20,
};

TEST(test_each_rule)
{
	assert_true(matches(&(struct select_options){ .comm = ONE("redis") }, &redis));
	assert_true(
		matches(&(struct select_options){ .comm = ONE("^redis-(server|cli)$") }, &redis));
	assert_false(matches(&(struct select_options){ .comm = ONE("^server") }, &redis));
	assert_true(matches(&(struct select_options){ .exe = ONE("/redis-") }, &redis));
	assert_false(matches(&(struct select_options){ .exe = ONE("redis-server") }, &redis));
	assert_true(matches(&(struct select_options){ .users = ONE("105") }, &redis));
	assert_false(matches(&(struct select_options){ .users = ONE("root") }, &redis));
}

/* The kernel keeps 15 characters of a name; the executable has the rest, if it has that name. */
TEST(test_long_names)
{
	static const struct {
		const char *comm, *exe, *pattern;
		bool fits;
	} cases[] = {
		{ "a-long-name-of-", "/opt/a-long-name-of-mine", "^a-long-name-of-mine$", true },
		{ "a-long-name-of-", "/opt/a-long-name-of-mine", "^a-long-name-of-$", true },
		{ "a-long-name-of-", "/opt/a-long-name-of-mine", "mine$", true },
		{ "a-long-name-of-", "/opt/a-long-name-of-mine", "^a-long-name-of-his$", false },
		{ "a-long-name-of-", "/opt/a-long-name-of-mine", "opt", false },
		{ "a-long-name-of-", "/usr/bin/python3", "^a-long-name-of-mine$", false },
		{ "a-long-name-of-", "/usr/bin/python3", "python", false },
		{ "a-long-name-of-", "", "^a-long-name-of-$", true },
		{ "a-name", "/opt/a-name-of-mine", "mine", false },
		{ "a-name-of-15-ch", "/opt/a-name-of-15-ch", "^a-name-of-15-ch$", true },
	};

	each_case(one, cases) {
		struct select_candidate c = { .comm = one->comm, .exe = one->exe };

		if (matches(&(struct select_options){ .comm = ONE(one->pattern) }, &c) != one->fits)
			fail_msg("%s: %s, %s", one->comm, one->exe, one->pattern);
		/* of --exclude the same */
		if (matches(&(struct select_options){ .is_all = true,
						      .exclude = ONE(one->pattern) },
			    &c) == (one->fits || strstr(one->exe, one->pattern)))
			fail_msg("--exclude: %s, %s", one->comm, one->pattern);
	}
}

TEST(test_all_that_are_given)
{
	struct select_options o = { .comm = ONE("redis"),
				    .exe = ONE("/usr/bin"),
				    .users = ONE("105") };

	assert_true(matches(&o, &redis));
	o.users = (struct texts)ONE("106");
	assert_false(matches(&o, &redis));
	o.users = (struct texts)ONE("105");
	o.exe = (struct texts)ONE("/opt");
	assert_false(matches(&o, &redis));
}

/* Of one kind one is enough. */
TEST(test_several)
{
	struct select_options o = { .comm = TWO("^postgres$", "^redis"), .exe = ONE("/usr") };

	assert_true(matches(&o, &redis));
	o.comm = (struct texts)TWO("^postgres$", "^mysql");
	assert_false(matches(&o, &redis));
	o.comm = (struct texts){ 0 };
	o.users = (struct texts)TWO("0", "105");
	assert_true(matches(&o, &redis));
	o.exclude = (struct texts)TWO("mysql", "check-rdb$");
	assert_false(matches(&o, &redis));
}

TEST(test_cgroups_and_containers)
{
	static const struct cgroup_place places[] = { { .path = "/a", .origin = "" },
						      { .path = "/b/c", .origin = "" } };
	struct select_options o = { .cgroups = places, .cgroup_cnt = 2 };
	struct select_candidate c = redis;

	c.container_id = "";
	c.cgroup = "0::/b/c/d\n";
	assert_true(matches(&o, &c));
	c.cgroup = "0::/b\n";
	assert_false(matches(&o, &c));
	o.containers = (struct texts)TWO("0123", "docker://abc");
	c.cgroup = "0::/a\n";
	assert_false(matches(&o, &c));
	c.container_id = "abcdef";
	assert_true(matches(&o, &c));
	o.comm = (struct texts)ONE("postgres");
	assert_false(matches(&o, &c));
}

TEST(test_all)
{
	struct select_options o = { .is_all = true, .exclude = ONE("^postgres") };
	struct select_candidate c = redis;

	assert_true(matches(&o, &c));
	o.min_rss_bytes = c.rss_bytes + 1;
	assert_false(matches(&o, &c));
	o.min_rss_bytes = 0;
	c.comm = "postgres";
	assert_false(matches(&o, &c));
}

TEST(test_what_is_wanted)
{
	static const struct cgroup_place place = { .path = "/a", .origin = "" };
	struct select_options o = { .comm = ONE("a") };
	struct select_rules *r = NULL;
	struct err why;

	assert_int_equal(select_rules_new(&o, &r, &why), 0);
	assert_false(select_needs(r).cgroup || select_needs(r).container || select_needs(r).is_all);
	assert_false(select_is_of_pids(r));
	select_rules_free(r);
	assert_int_equal(select_rules_new(&(struct select_options){ .has_pids = true,
								    .exclude = ONE("a"),
								    .min_rss_bytes = 1 },
					  &r, &why),
			 0);
	assert_true(select_is_of_pids(r));
	select_rules_free(r);
	assert_int_equal(select_rules_new(&(struct select_options){ .is_all = true }, &r, &why), 0);
	assert_false(select_is_of_pids(r));
	select_rules_free(r);
	o.cgroups = &place;
	o.cgroup_cnt = 1;
	o.containers = (struct texts)ONE("0");
	assert_int_equal(select_rules_new(&o, &r, &why), 0);
	assert_true(select_needs(r).cgroup && select_needs(r).container);
	select_rules_free(r);
}

static bool may_change(const struct select_options *o)
{
	struct select_rules *r = NULL;
	struct err why = { 0 };
	bool may;

	assert_int_equal(select_rules_new(o, &r, &why), 0);
	may = select_needs(r).may_change;
	select_rules_free(r);
	return may;
}

/* An executable changes by an exec only, everything else at any time. */
TEST(test_what_may_change)
{
	static const struct cgroup_place place = { .path = "/a", .origin = "" };

	assert_false(may_change(&(struct select_options){ .exe = ONE("a") }));
	assert_false(may_change(&(struct select_options){ .is_all = true }));
	assert_false(may_change(&(struct select_options){ .exe = ONE("a"), .min_rss_bytes = 1 }));
	assert_true(may_change(&(struct select_options){ .exe = ONE("a"), .comm = ONE("a") }));
	assert_true(may_change(&(struct select_options){ .is_all = true, .exclude = ONE("a") }));
	assert_true(may_change(&(struct select_options){ .users = ONE("0") }));
	assert_true(may_change(&(struct select_options){ .cgroups = &place, .cgroup_cnt = 1 }));
	assert_true(may_change(&(struct select_options){ .containers = ONE("0") }));
}

TEST(test_size)
{
	struct select_options o = { .comm = ONE("redis"), .min_rss_bytes = (10 << 20) + 1 };
	struct select_candidate c = redis;

	assert_false(matches(&o, &c));
	c.is_followed = true; /* it has shrunk */
	assert_true(matches(&o, &c));
	c.is_followed = false;
	o.min_rss_bytes--;
	assert_true(matches(&o, &c));
}

TEST(test_exclude)
{
	struct select_candidate c = redis;

	assert_false(matches(
		&(struct select_options){ .comm = ONE("redis"), .exclude = ONE("server$") }, &c));
	assert_false(matches(
		&(struct select_options){ .comm = ONE("redis"), .exclude = ONE("^/usr") }, &c));
	assert_true(matches(&(struct select_options){ .comm = ONE("redis"), .exclude = ONE("cli") },
			    &c));
	c.is_followed = true; /* it has become another program */
	assert_false(matches(
		&(struct select_options){ .comm = ONE("redis"), .exclude = ONE("server$") }, &c));
}

/* Who is named is followed, whatever the rules say about the others. */
TEST(test_named)
{
	struct select_options o = { .has_pids = true, .min_rss_bytes = 1ULL << 40 };
	struct select_candidate c = redis;

	assert_false(matches(&o, &c));
	c.is_named = true;
	assert_true(matches(&o, &c));
	o.comm = (struct texts)ONE("postgres");
	o.exclude = (struct texts)ONE("redis");
	assert_true(matches(&o, &c));
	c.is_named = false;
	c.comm = "postgres";
	c.rss_bytes = 1ULL << 40;
	c.exe = "/usr/bin/postgres";
	assert_true(matches(&o, &c));
}

TEST(test_bad)
{
	struct select_rules *r = NULL;
	struct err why = { 0 };

	assert_int_equal(select_rules_new(&(struct select_options){ .min_rss_bytes = 1 }, &r, &why),
			 -EINVAL);
	assert_says(why.text, "nothing to track");
	assert_int_equal(
		select_rules_new(&(struct select_options){ .is_all = true, .comm = ONE("a") }, &r,
				 &why),
		-EINVAL);
	assert_says(why.text, "--all");
	assert_int_equal(
		select_rules_new(&(struct select_options){ .comm = ONE("a"), .exe = ONE("(") }, &r,
				 &why),
		-EINVAL);
	assert_says(why.text, "'('");
	assert_int_equal(select_rules_new(&(struct select_options){ .users = ONE("no such one") },
					  &r, &why),
			 -EINVAL);
	assert_says(why.text, "no such one");
	assert_int_equal(select_check_user("4294967295", &why), -EINVAL);
	assert_int_equal(select_check_user("-1", &why), -EINVAL);
	assert_int_equal(select_check_user("0", &why), 0);
	assert_int_equal(select_check_pattern("^a|b$", &why), 0);
	assert_null(r);
}

RUN_TESTS()
