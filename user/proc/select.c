/* SPDX-License-Identifier: MIT */
/* select.c - see select.h. */
#include "proc/select.h"

#include <pwd.h>
#include <regex.h>

#include "base/err.h"
#include "proc/cgroup.h"
#include "proc/facts.h"

struct patterns {
	VEC(regex_t) res;
};

struct select_rules {
	struct patterns comm, exe, exclude;
	VEC(uid_t) uids;
	VEC(struct cgroup_place) cgroups;
	struct texts containers;
	uint64_t min_rss_bytes;
	bool is_all;
};

static int compile(regex_t *re, const char *text, struct err *why)
{
	char reason[128];
	int rc = regcomp(re, text, REG_EXTENDED | REG_NOSUB);

	if (!rc)
		return 0;
	regerror(rc, re, reason, sizeof(reason));
	return err_set(why, rc == REG_ESPACE ? -ENOMEM : -EINVAL,
		       "bad regular expression '%s': "
		       "%s",
		       text, reason);
}

int select_check_pattern(const char *text, struct err *why)
{
	regex_t re;
	int err = compile(&re, text, why);

	if (!err)
		regfree(&re);
	return err;
}

static int find_user(const char *text, uid_t *ret, struct err *why)
{
	const struct passwd *pw = getpwnam(text);
	unsigned long n;
	char *end;

	if (pw) {
		*ret = pw->pw_uid;
		return 0;
	}
	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno || *end || n >= UINT32_MAX)
		return err_set(why, -EINVAL, "there is no user '%s'", text);
	*ret = (uid_t)n;
	return 0;
}

int select_check_user(const char *text, struct err *why)
{
	uid_t uid;

	return find_user(text, &uid, why);
}

static int add_patterns(struct patterns *p, const struct texts *texts, struct err *why)
{
	int err = vec_reserve(&p->res, texts->cnt);

	for (size_t i = 0; i < texts->cnt && !err; i++) {
		err = compile(&p->res.data[i], texts->data[i], why);
		p->res.cnt += !err;
	}
	return err;
}

static int add_users(struct select_rules *r, const struct texts *users, struct err *why)
{
	int err = 0;

	for (size_t i = 0; i < users->cnt && !err; i++) {
		uid_t uid = 0;

		err = find_user(users->data[i], &uid, why);
		if (!err)
			err = vec_push(&r->uids, uid);
	}
	return err;
}

static int add_places(struct select_rules *r, const struct select_options *opts)
{
	int err = vec_reserve(&r->cgroups, opts->cgroup_cnt);

	for (size_t i = 0; i < opts->cgroup_cnt && !err; i++) {
		const struct cgroup_place *from = &opts->cgroups[i];
		struct cgroup_place *to = &r->cgroups.data[r->cgroups.cnt++];

		to->path = strdup(from->path);
		to->controllers = from->controllers ? strdup(from->controllers) : NULL;
		to->origin = strdup(from->origin);
		if (!to->path || !to->origin || !to->controllers != !from->controllers)
			err = -ENOMEM;
	}
	for (size_t i = 0; i < opts->containers.cnt && !err; i++)
		err = texts_add(&r->containers, opts->containers.data[i]);
	return err;
}

static bool has_kinds(const struct select_options *o)
{
	return o->comm.cnt || o->exe.cnt || o->users.cnt || o->cgroup_cnt || o->containers.cnt;
}

static int check_what_is_given(const struct select_options *opts, struct err *why)
{
	if (opts->is_all && has_kinds(opts))
		return err_set(why, -EINVAL,
			       "--all excludes --comm, --exe, --user, --cgroup and --container");
	if (!opts->has_pids && !opts->is_all && !has_kinds(opts))
		return err_set(
			why, -EINVAL,
			"nothing to track: give at least one of -p PID, --comm, --exe, --user, "
			"--cgroup, --container, or --all");
	return 0;
}

int select_rules_new(const struct select_options *opts, struct select_rules **ret, struct err *why)
{
	struct select_rules *r;
	int err = check_what_is_given(opts, why);

	if (err)
		return err;
	err_set(why, -ENOMEM, "out of memory");
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->min_rss_bytes = opts->min_rss_bytes;
	r->is_all = opts->is_all;
	err = add_patterns(&r->comm, &opts->comm, why);
	if (!err)
		err = add_patterns(&r->exe, &opts->exe, why);
	if (!err)
		err = add_patterns(&r->exclude, &opts->exclude, why);
	if (!err)
		err = add_users(r, &opts->users, why);
	if (!err)
		err = add_places(r, opts);
	if (err)
		select_rules_free(r);
	else
		*ret = r;
	return err;
}

static void release(struct patterns *p)
{
	regex_t *re;

	vec_each(&p->res, re)
		regfree(re);
	vec_release(&p->res);
}

void select_rules_free(struct select_rules *r)
{
	struct cgroup_place *place;

	if (!r)
		return;
	vec_each(&r->cgroups, place)
		cgroup_release(place);
	vec_release(&r->cgroups);
	texts_release(&r->containers);
	release(&r->comm);
	release(&r->exe);
	release(&r->exclude);
	vec_release(&r->uids);
	free(r);
}

static bool fits_one(const struct patterns *p, const char *text)
{
	const regex_t *re;

	vec_each(&p->res, re)
		if (!regexec(re, text, 0, NULL, 0))
			return true;
	return false;
}

static bool is_of_user(const struct select_rules *r, uid_t uid)
{
	const uid_t *one;

	vec_each(&r->uids, one)
		if (*one == uid)
			return true;
	return false;
}

bool select_is_of_pids(const struct select_rules *r)
{
	return !r->is_all && !r->comm.res.cnt && !r->exe.res.cnt && !r->uids.cnt &&
	       !r->cgroups.cnt && !r->containers.cnt;
}

struct select_needs select_needs(const struct select_rules *r)
{
	return (struct select_needs){
		.cgroup = r->cgroups.cnt,
		.container = r->containers.cnt,
		.is_all = r->is_all,
		.may_change = r->comm.res.cnt || r->exclude.res.cnt || r->uids.cnt ||
			      r->cgroups.cnt || r->containers.cnt,
		.min_rss_bytes = r->min_rss_bytes,
	};
}

static bool is_in_cgroup(const struct select_rules *r, const char *cgroup)
{
	const struct cgroup_place *place;

	vec_each(&r->cgroups, place)
		if (cgroup_holds(place, cgroup))
			return true;
	return false;
}

static bool is_in_container(const struct select_rules *r, const char *id)
{
	for (size_t i = 0; i < r->containers.cnt; i++)
		if (container_id_matches(id, r->containers.data[i]))
			return true;
	return false;
}

const char *select_name(const char *comm, const char *exe)
{
	const char *slash = strrchr(exe, '/'), *base = slash ? slash + 1 : exe;
	bool is_cut = strlen(comm) == SELECT_COMM_CHARS;

	return is_cut && !strncmp(base, comm, SELECT_COMM_CHARS) ? base : comm;
}

/* By its whole name, or as the kernel cuts it. */
static bool fits_name(const struct patterns *p, const struct select_candidate *c)
{
	const char *name = select_name(c->comm, c->exe);

	return fits_one(p, c->comm) || (name != c->comm && fits_one(p, name));
}

/* Does a value of each given kind fit? */
static bool fits_kinds(const struct select_rules *r, const struct select_candidate *c)
{
	if (r->is_all || select_is_of_pids(r))
		return r->is_all;
	return (!r->comm.res.cnt || fits_name(&r->comm, c)) &&
	       (!r->exe.res.cnt || fits_one(&r->exe, c->exe)) &&
	       (!r->uids.cnt || is_of_user(r, c->uid)) &&
	       (!r->cgroups.cnt || is_in_cgroup(r, c->cgroup)) &&
	       (!r->containers.cnt || is_in_container(r, c->container_id));
}

bool select_matches(const struct select_rules *r, const struct select_candidate *c)
{
	if (c->is_named)
		return true;
	if (!fits_kinds(r, c) || fits_name(&r->exclude, c) || fits_one(&r->exclude, c->exe))
		return false;
	return c->is_followed || c->rss_bytes >= r->min_rss_bytes;
}
