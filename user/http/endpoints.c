/* SPDX-License-Identifier: MIT */
/* endpoints.c - see endpoints.h. */
#include "http/endpoints.h"

#include "base/err.h"
#include "base/units.h"

static const struct page {
	const char *path;
	enum endpoint endpoint;
	bool per_process; /* also exists below /pid/N */
} pages[] = {
	{ "/", ENDPOINT_INDEX, false },
	{ "/healthz", ENDPOINT_HEALTH, false },
	{ "/metrics", ENDPOINT_METRICS, false },
	{ "/debug/pprof/", ENDPOINT_PPROF_INDEX, true },
	{ "/debug/pprof/heap", ENDPOINT_HEAP, true },
	{ "/debug/pprof/allocs", ENDPOINT_ALLOCS, true },
	{ "/debug/pprof/cmdline", ENDPOINT_CMDLINE, true },
	{ "/pprof/heap", ENDPOINT_REMOTE_HEAP, true },
	{ "/pprof/growth", ENDPOINT_REMOTE_GROWTH, true },
	{ "/pprof/cmdline", ENDPOINT_CMDLINE, true },
	{ "/pprof/symbol", ENDPOINT_SYMBOL, true },
	{ "/", ENDPOINT_PROCESS, true }, /* without /pid/N it is the index */
	{ "/viewer", ENDPOINT_VIEWER, true },
	{ "/api", ENDPOINT_INDEX_JSON, false },
	{ "/api", ENDPOINT_PROCESS_JSON, true }, /* likewise */
	{ "/viewer.js", ENDPOINT_VIEWER_SCRIPT, false },
	{ "/viewer.css", ENDPOINT_VIEWER_STYLE, false },
	{ "/page.js", ENDPOINT_PAGE_SCRIPT, false },
	{ "/page.css", ENDPOINT_PAGE_STYLE, false },
	{ "/index.js", ENDPOINT_INDEX_SCRIPT, false },
	{ "/process.js", ENDPOINT_PROCESS_SCRIPT, false },
	{ "/diff", ENDPOINT_DIFF, true },
	{ "/growth", ENDPOINT_GROWTH, true },
};

/* Parse decimal digits only, 1 to max; *end points behind them. */
static int parse_number(const char *text, uint32_t max, uint32_t *ret, const char **end)
{
	uint64_t n = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && n <= max; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	if (at == text || !n || n > max)
		return -EINVAL;
	*ret = (uint32_t)n;
	*end = at;
	return 0;
}

int endpoint_parse_path(const char *path, struct result_request *ret)
{
	static const char prefix[] = "/pid/";
	struct result_request r = { 0 };
	uint32_t pid;

	if (!strncmp(path, prefix, sizeof(prefix) - 1)) {
		if (parse_number(path + sizeof(prefix) - 1, INT32_MAX, &pid, &path))
			return -ENOENT;
		r.pid = (pid_t)pid;
	}
	for (size_t i = 0; i < ARRAY_CNT(pages); i++) {
		if (strcmp(path, pages[i].path) || (r.pid && !pages[i].per_process))
			continue;
		r.endpoint = pages[i].endpoint;
		*ret = r;
		return 0;
	}
	return -ENOENT;
}

int endpoint_parse_folder(const char *path, struct result_request *ret)
{
	char page[ENDPOINT_PATH_BUF];

	if ((size_t)snprintf(page, sizeof(page), "%s/", path) >= sizeof(page))
		return -ENOENT;
	return endpoint_parse_path(page, ret);
}

static int parse_pid(const char *key, const char *value, pid_t *ret, struct err *why)
{
	const char *end = "";
	uint32_t n;

	if (parse_number(value, INT32_MAX, &n, &end) || *end)
		return err_set(why, -EINVAL, "bad %s: expected a process id", key);
	*ret = (pid_t)n;
	return 0;
}

static int set_pid(struct result_request *r, const char *value, struct err *why)
{
	pid_t pid;
	int err = parse_pid("pid", value, &pid, why);

	if (err)
		return err;
	if (r->pid && r->pid != pid)
		return err_set(why, -EINVAL, "pid names two different processes");
	r->pid = pid;
	return 0;
}

static int set_seconds(struct result_request *r, const char *value, struct err *why)
{
	const char *end = "";
	uint32_t n;

	/* 0 seconds: a snapshot. */
	if (!strcmp(value, "0")) {
		r->seconds = 0;
		return 0;
	}
	if (parse_number(value, ENDPOINT_SECONDS_CAP, &n, &end) || *end)
		return err_set(why, -EINVAL, "bad seconds: expected a number from 0 to %d",
			       ENDPOINT_SECONDS_CAP);
	r->seconds = n;
	return 0;
}

static bool is_view(enum endpoint endpoint)
{
	return endpoint == ENDPOINT_VIEWER || endpoint == ENDPOINT_DIFF;
}

static bool is_profile(enum endpoint endpoint)
{
	return endpoint == ENDPOINT_HEAP || endpoint == ENDPOINT_ALLOCS ||
	       endpoint == ENDPOINT_REMOTE_HEAP || endpoint == ENDPOINT_REMOTE_GROWTH;
}

/* Does this endpoint take a moment, or a time? */
static bool has_time(enum endpoint endpoint)
{
	return is_profile(endpoint) || is_view(endpoint);
}

static const char *const moments[] = {
	[ENDPOINT_NOW] = "now",
	[ENDPOINT_AT_PEAK] = "peak",
	[ENDPOINT_AT_LIMIT] = "limit",
	[ENDPOINT_AT_LAST] = "last",
};

const char *endpoint_moment_text(enum endpoint_moment at)
{
	return moments[at];
}

bool endpoint_is_of_moments(const struct result_request *r)
{
	return r->has_from && !r->from_at && !r->to_at && !r->from_pid;
}

static bool find_moment(const char *value, enum endpoint_moment *ret)
{
	for (size_t i = 0; i < ARRAY_CNT(moments); i++) {
		if (strcmp(value, moments[i]))
			continue;
		*ret = (enum endpoint_moment)i;
		return true;
	}
	return false;
}

static int set_moment(struct result_request *r, const char *value, struct err *why)
{
	if (find_moment(value, &r->at))
		return 0;
	return err_set(why, -EINVAL, "bad at: expected peak, limit, last or now");
}

char *endpoint_time_text(int64_t epoch_s, char buf[ENDPOINT_TIME_BUF])
{
	time_t t = (time_t)epoch_s;
	struct tm tm;

	buf[0] = '\0';
	if (gmtime_r(&t, &tm))
		strftime(buf, ENDPOINT_TIME_BUF, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf;
}

/* Of the same form, digit for digit? */
static bool looks_like_time(const char *text)
{
	static const char form[] = "2026-11-26T14:05:00Z";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] >= '0' && form[i] <= '9' ? text[i] < '0' || text[i] > '9' :
						       text[i] != form[i])
			return false;
	return true;
}

/* timegm() makes a day of March of the 30th of February: then it is no such time. */
int endpoint_parse_time(const char *text, int64_t *ret)
{
	struct tm tm = { 0 }, given;
	int64_t t;

	if (!looks_like_time(text) || !strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return -EINVAL;
	given = tm;
	t = (int64_t)timegm(&tm);
	if (tm.tm_mon != given.tm_mon || tm.tm_mday != given.tm_mday ||
	    tm.tm_hour != given.tm_hour || tm.tm_min != given.tm_min || tm.tm_sec != given.tm_sec)
		return -EINVAL;
	*ret = t > 0 ? t : 1; /* 0 is no time, and nothing is older */
	return 0;
}

static int set_time(int64_t *to, const char *key, const char *value, struct err *why)
{
	if (!endpoint_parse_time(value, to))
		return 0;
	return err_set(
		why, -EINVAL,
		"bad %s: expected a time in UTC, as 2026-11-26T14:05:00Z; or peak, limit or last",
		key);
}

/* Set an argument of the difference of two sides. */
static int set_diff_arg(struct result_request *r, const char *key, const char *value,
			struct err *why)
{
	if (!strcmp(key, "from")) {
		r->has_from = true;
		return find_moment(value, &r->from_at) && r->from_at ?
			       0 :
			       set_time(&r->from_s, key, value, why);
	}
	if (!strcmp(key, "from_pid"))
		return parse_pid(key, value, &r->from_pid, why);
	if (!strcmp(key, "to") && value[0])
		return find_moment(value, &r->to_at) ? 0 : set_time(&r->to_s, key, value, why);
	if (strcmp(key, "format"))
		return 0;
	r->is_json = !strcmp(value, "json");
	r->is_plain = !strcmp(value, "text");
	if (r->is_json || r->is_plain || !strcmp(value, "html"))
		return 0;
	return err_set(why, -EINVAL, "bad format: expected html, text or json");
}

static int set_growth_arg(struct result_request *r, const char *key, const char *value,
			  struct err *why)
{
	if (!strcmp(key, "of")) {
		r->of_day = !strcmp(value, "day");
		if (r->of_day || !strcmp(value, "hour"))
			return 0;
		return err_set(why, -EINVAL, "bad of: expected hour or day");
	}
	if (strcmp(key, "by"))
		return 0;
	r->by_scope = !strcmp(value, "scope");
	if (r->by_scope || !strcmp(value, "stack"))
		return 0;
	return err_set(why, -EINVAL, "bad by: expected stack or scope");
}

int endpoint_set_arg(struct result_request *r, const char *key, const char *value, struct err *why)
{
	bool may_have_pid = is_profile(r->endpoint) || endpoint_is_of_one(r->endpoint);

	if (may_have_pid && !strcmp(key, "pid"))
		return set_pid(r, value, why);
	if ((r->endpoint == ENDPOINT_INDEX || r->endpoint == ENDPOINT_PROCESS) &&
	    !strcmp(key, "live"))
		r->is_still = !strcmp(value, "0");
	if (r->endpoint == ENDPOINT_GROWTH)
		return set_growth_arg(r, key, value, why);
	if (r->endpoint == ENDPOINT_DIFF && strcmp(key, "at") && strcmp(key, "seconds"))
		return set_diff_arg(r, key, value, why);
	if (has_time(r->endpoint) && !strcmp(key, "seconds"))
		return set_seconds(r, value, why);
	if (has_time(r->endpoint) && !strcmp(key, "at"))
		return set_moment(r, value, why);
	if ((r->endpoint == ENDPOINT_HEAP || r->endpoint == ENDPOINT_VIEWER) &&
	    !strcmp(key, "pinned"))
		r->wants_pinned = !strcmp(value, "1");
	/* In Go, debug counts as 0 if it is not a number, and gc asks for a collection before: here nothing is
	 * garbage. */
	if ((r->endpoint == ENDPOINT_HEAP || r->endpoint == ENDPOINT_ALLOCS) &&
	    !strcmp(key, "debug"))
		r->is_text = *value >= '1' && *value <= '9';
	return 0;
}

int endpoint_check(const struct result_request *r, struct err *why)
{
	bool has_moments = r->endpoint == ENDPOINT_HEAP || is_view(r->endpoint);

	bool is_of_two = r->at == ENDPOINT_NOW && (r->has_from || r->from_pid);
	bool is_of_saved = r->at != ENDPOINT_NOW && !r->has_from && !r->to_s && !r->from_pid;

	if (r->endpoint == ENDPOINT_DIFF && (!(is_of_two || is_of_saved) || r->seconds || !r->pid))
		return err_set(
			why, -EINVAL,
			"a difference needs a saved profile, two moments or another process: "
			"/pid/N/diff?at=peak, limit or last; ?from=TIME&to=TIME; ?from_pid=N");
	if (r->from_pid && r->from_pid == r->pid)
		return err_set(why, -EINVAL, "from_pid is the process itself");
	if (r->to_s && r->from_s >= r->to_s && !r->from_pid)
		return err_set(why, -EINVAL, "from must be before to");
	if (r->at != ENDPOINT_NOW && (!has_moments || !r->pid || r->is_text || r->seconds))
		return err_set(
			why, -EINVAL,
			"at= needs the heap profile of one process, without seconds and debug");
	if (r->wants_pinned && (!r->pid || r->at != ENDPOINT_NOW || r->is_text || r->seconds))
		return err_set(
			why, -EINVAL,
			"pinned= needs the heap profile of one process, without at, seconds and debug");
	if (!r->is_text || !r->seconds)
		return 0;
	return err_set(why, -EINVAL, "seconds and debug exclude each other");
}

void result_request_release(struct result_request *r)
{
	free(r->addrs.addrs);
	free(r->page);
	if (result_has_saved(r))
		close(r->saved_fd);
	if (r->to_at != ENDPOINT_NOW)
		close(r->after_fd);
}

bool result_has_saved(const struct result_request *r)
{
	return r->at != ENDPOINT_NOW || r->from_at != ENDPOINT_NOW;
}

bool result_is_of_past(const struct result_request *r)
{
	if (r->endpoint == ENDPOINT_DIFF)
		return r->from_at != ENDPOINT_NOW && r->to_at != ENDPOINT_NOW;
	return r->endpoint == ENDPOINT_VIEWER && r->at != ENDPOINT_NOW;
}

pid_t result_needs(const struct result_request *r)
{
	bool is_saved = r->from_pid ? r->to_at != ENDPOINT_NOW : result_is_of_past(r);

	return is_saved ? 0 : r->pid;
}

pid_t result_needs_from(const struct result_request *r)
{
	return r->from_at != ENDPOINT_NOW ? 0 : r->from_pid;
}

/* Parse one address; *text then points behind it. */
static int parse_addr(const char **text, const char *end, uint64_t *ret)
{
	const char *at = *text;
	uint64_t n = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	if (at == end || hex_digit(*at) < 0)
		return -EINVAL;
	for (; at < end && hex_digit(*at) >= 0; at++) {
		if (n >> 60)
			return -EINVAL;
		n = n << 4 | (uint64_t)hex_digit(*at);
	}
	*text = at;
	*ret = n;
	return 0;
}

int endpoint_parse_addrs(const char *text, size_t bytes, struct endpoint_addrs *ret,
			 struct err *why)
{
	const char *end = text + bytes;
	struct endpoint_addrs a = { 0 };
	size_t cap = 1;

	while (end > text && (end[-1] == '\r' || end[-1] == '\n'))
		end--;
	for (const char *at = text; at < end; at++)
		cap += *at == '+';
	if (cap > ENDPOINT_ADDRS_CAP)
		return err_set(why, -EINVAL, "more than %d addresses at once", ENDPOINT_ADDRS_CAP);
	a.addrs = calloc(cap, sizeof(*a.addrs));
	if (!a.addrs)
		return -ENOMEM;
	while (text < end) {
		if (parse_addr(&text, end, &a.addrs[a.addr_cnt]) || (text < end && *text != '+')) {
			free(a.addrs);
			return err_set(why, -EINVAL, "expected addresses, as in 0x1234+0x5678");
		}
		a.addr_cnt++;
		text += text < end;
	}
	*ret = a;
	return 0;
}
