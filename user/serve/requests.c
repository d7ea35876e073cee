/* SPDX-License-Identifier: MIT */
/* requests.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include "base/err.h"
#include "base/log.h"
#include "http/endpoints.h"
#include "http/http.h"
#include "http/pages.h"
#include "http/past.h"
#include "http/view.h"
#include "report/report.h"
#include "record/saver.h"
#include "serve/follow.h"
#include "serve/pushes.h"
#include "track/tracker.h"

/* A requested time may be this many seconds from a moment, plus this part of the moment's age. */
#define MOMENT_NEAR_S 60
#define MOMENT_NEAR_PART 10

struct requests {
	struct http_server *server;
	struct requests_parts parts;
};

static const struct serve_process *find_process(const struct serve_view *v, pid_t pid)
{
	for (size_t i = 0; i < v->process_cnt; i++)
		if (v->processes[i].pid == pid)
			return &v->processes[i];
	return NULL;
}

/* -ESRCH: the process is not followed. */
static int write_one(const struct serve_view *v, const struct result_request *r,
		     enum metric_format format, FILE *out)
{
	const struct serve_process *one = find_process(v, r->pid);

	if (r->pid && !one)
		return -ESRCH;
	switch (r->endpoint) {
	case ENDPOINT_PROCESS:
		return process_page_write(v, one, !r->is_still, out);
	case ENDPOINT_INDEX:
		return index_page_write(v, !r->is_still, out);
	case ENDPOINT_PROCESS_JSON:
		page_json_process(v, one, out);
		return 0;
	case ENDPOINT_INDEX_JSON:
		page_json_index(v, out);
		return 0;
	default:
		metrics_page_write(v, format, out);
		return 0;
	}
}

static int write_page(const struct requests_parts *parts, const struct result_request *r,
		      enum metric_format format, char **ret)
{
	struct serve_view view;
	struct serve_push *pushes;
	size_t bytes;
	FILE *out;
	int err = live_view_get(parts->live_view, &view);

	if (err)
		return err;
	view.refused_cnt = (double)follow_refused_cnt(parts->follow);
	view.own.cpu_seconds = (double)follow_own_cpu_ns(parts->follow) / (double)NS_PER_S;
	view.own.profile_snapshot_seconds = profiles_snapshot_seconds(parts->profiles);
	view.push_cnt = pushes_cnt(parts->pushes);
	pushes = calloc(view.push_cnt + 1, sizeof(*pushes));
	if (!pushes)
		return -ENOMEM;
	for (size_t i = 0; i < view.push_cnt; i++)
		pushes_view(parts->pushes, i, &pushes[i]);
	view.pushes = pushes;
	err = saver_view(parts->saver, &view.keep);
	if (err)
		goto out;
	out = open_memstream(ret, &bytes);
	if (!out) {
		err = -ENOMEM;
		goto out;
	}
	err = write_one(&view, r, format, out);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err)
		free(*ret);
out:
	saver_view_release(&view.keep);
	free(pushes);
	return err;
}

/* The moments of a followed process at which its stacks are known. */
static size_t moments_of(const struct requests_parts *parts, pid_t pid,
			 const struct stack_past_moment **ret)
{
	const struct result_source *src = parts->source;

	return src->stacks ? stack_past_moments(src->stacks, result_image(src, pid), ret) : 0;
}

static bool has_moments(const struct requests_parts *parts, pid_t pid)
{
	const struct stack_past_moment *ignored;

	return moments_of(parts, pid, &ignored) > 0;
}

static void answer_page(const struct requests_parts *parts, struct http_exchange *x,
			struct result_request *r)
{
	enum metric_format format = metric_format_choose(http_header(x, "Accept"));
	struct http_answer a = { .status = 200 };
	char *text = NULL;
	int err = write_page(parts, r, format, &text);

	if (err == -ESRCH) {
		http_error(x, 404, "process %d is not tracked: / lists the tracked processes\n",
			   r->pid);
		return;
	}
	if (err) {
		http_error(x, 500, "cannot read the samples: %s\n", strerror(-err));
		return;
	}
	if (r->endpoint == ENDPOINT_PROCESS && !http_request(x)->is_head &&
	    has_moments(parts, r->pid)) {
		r->page = text;
		profiles_request(parts->profiles, x, r);
		return;
	}
	a.text = text;
	a.has_script = r->endpoint == ENDPOINT_PROCESS || r->endpoint == ENDPOINT_INDEX;
	a.type = a.has_script			 ? "text/html; charset=utf-8" :
		 r->endpoint == ENDPOINT_METRICS ? metric_format_type(format) :
						   "application/json";
	http_reply(x, &a);
	free(text);
}

static void answer_script(struct http_exchange *x, const char *text)
{
	const struct http_answer a = { .status = 200,
				       .type = "text/javascript; charset=utf-8",
				       .text = text };

	http_reply(x, &a);
}

static void answer_style(struct http_exchange *x, const char *text)
{
	const struct http_answer a = { .status = 200,
				       .type = "text/css; charset=utf-8",
				       .text = text };

	http_reply(x, &a);
}

/* Like Go's page of this name, for users who look for what there is. */
static void answer_pprof_index(struct http_exchange *x)
{
	static const struct http_answer a = {
		.status = 200,
		.type = "text/html; charset=utf-8",
		.text = "<!DOCTYPE html>\n"
			"<html lang=\"en\"><head><meta "
			"charset=\"utf-8\"><title>/debug/pprof/</title></head><body>\n"
			"<p>Profiles for <code>go tool pprof</code>; debug=1: as text</p>\n"
			"<ul>\n"
			"<li><a href=\"allocs?debug=1\">allocs</a> allocations since a process "
			"is tracked; seconds=N: within N seconds\n"
			"<li><a href=\"heap?debug=1\">heap</a> heap in use\n"
			"<li><a href=\"cmdline\">cmdline</a> the command line of the process\n"
			"</ul></body></html>\n",
	};

	http_reply(x, &a);
}

/* The only followed process. 0: the client was told what there is instead. */
static pid_t only_process(const struct requests_parts *parts, struct http_exchange *x)
{
	size_t cnt = tracker_running_cnt(parts->tracker);
	char list[256] = "";
	size_t used = 0;

	if (cnt == 1)
		return tracker_running_at(parts->tracker, 0);
	for (size_t i = 0; i < cnt && used < sizeof(list) - 16; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, " %d",
					 tracker_running_at(parts->tracker, i));
	if (cnt)
		http_error(x, 400,
			   "this page shows one process: use /pid/PID%s (or ?pid=PID); "
			   "tracked:%s%s\n",
			   http_request(x)->path, list, used < sizeof(list) - 16 ? "" : " ...");
	else
		http_error(x, 404, "no process is tracked now\n");
	return 0;
}

/* POST asks for names; GET, whether there are any. */
static void answer_symbol(const struct requests_parts *parts, struct http_exchange *x,
			  struct result_request *r)
{
	/* Clients only check whether the number is 0 (Go does the same). Every address has some name here. */
	static const struct http_answer some = { .status = 200, .text = "num_symbols: 1\n" };
	struct err why = { .text = "out of memory" };
	const struct http_request *asked = http_request(x);

	if (!asked->is_post) {
		http_reply(x, &some);
		return;
	}
	if (endpoint_parse_addrs(asked->body, asked->body_bytes, &r->addrs, &why))
		http_error(x, 400, "%s\n", why.text);
	else
		profiles_request(parts->profiles, x, r);
}

static void answer_profile(const struct requests_parts *parts, struct http_exchange *x,
			   struct result_request *r)
{
	struct http_answer head = { .status = 200, .fd = -1 };

	if (!http_request(x)->is_head) {
		profiles_request(parts->profiles, x, r);
		return;
	}
	/* without making the profile */
	profile_answer_type(r, &head);
	http_reply(x, &head);
	result_request_release(r);
}

static void refuse_saved(struct http_exchange *x, pid_t pid, enum endpoint_moment at)
{
	http_error(x, 404, "process %d has no saved profile at=%s: / lists the saved profiles\n",
		   pid, endpoint_moment_text(at));
}

/* Answer with a saved profile, or what is made of it, also for a process that has ended. */
static void answer_kept(const struct requests_parts *parts, struct http_exchange *x,
			struct result_request *r)
{
	struct http_answer a = {
		.status = 200, .type = "application/octet-stream", .file_name = "heap", .fd = -1
	};

	a.fd = r->saved_fd = saver_fetch(parts->saver, r->pid, r->at);
	if (a.fd < 0)
		refuse_saved(x, r->pid, r->at);
	else if (r->endpoint == ENDPOINT_HEAP)
		http_reply(x, &a);
	else
		answer_profile(parts, x, r);
}

static int64_t seconds_of(const struct stack_past_moment *m)
{
	return m->epoch_ns / (int64_t)NS_PER_S;
}

/* Find the moment nearest to that time; if the clock has jumped, the newest of several. -ENOENT: none is near. */
static int nearest_moment(const struct stack_past_moment *m, size_t cnt, int64_t epoch_s,
			  size_t *ret)
{
	int64_t best_s = INT64_MAX, age_s;

	*ret = 0;
	for (size_t i = 0; i < cnt; i++) {
		int64_t off_s = llabs(seconds_of(&m[i]) - epoch_s);

		if (off_s > best_s)
			continue;
		best_s = off_s;
		*ret = i;
	}
	age_s = (int64_t)((m[cnt - 1].time_ns - m[*ret].time_ns) / NS_PER_S);
	return best_s <= MOMENT_NEAR_S + age_s / MOMENT_NEAR_PART ? 0 : -ENOENT;
}

/* Say why nothing is kept of that process. */
static void refuse_past(const struct requests_parts *parts, struct http_exchange *x, pid_t pid)
{
	if (!parts->source->stacks)
		http_error(x, 404, "no moments are stored: --past-interval is 0\n");
	else
		http_error(x, 404,
			   "no moments of process %d are stored yet, or its heap in use is "
			   "unknown: see /pid/%d/\n",
			   pid, pid);
}

static void refuse_moment(struct http_exchange *x, pid_t pid, const struct stack_past_moment *m,
			  size_t cnt)
{
	char first[ENDPOINT_TIME_BUF], last[ENDPOINT_TIME_BUF];

	http_error(x, 404,
		   "no moment of process %d is stored near that time, only from %s to %s: "
		   "/pid/%d/?live=0 lists them\n",
		   pid, endpoint_time_text(seconds_of(&m[0]), first),
		   endpoint_time_text(seconds_of(&m[cnt - 1]), last), pid);
}

/* Say why there is no such side of a difference. */
static void refuse_side(const struct requests_parts *parts, struct http_exchange *x, pid_t pid,
			enum endpoint_moment at)
{
	const struct stack_past_moment *m = NULL;
	size_t cnt = at ? 0 : moments_of(parts, pid, &m);

	if (at)
		refuse_saved(x, pid, at);
	else if (cnt)
		refuse_moment(x, pid, m, cnt);
	else
		refuse_past(parts, x, pid);
}

/* Find one side of a difference with a saved profile: its descriptor, or a moment's time (0: now), and its name. */
static int find_side(const struct requests_parts *parts, pid_t pid, enum endpoint_moment at,
		     int64_t epoch_s, int *ret_fd, uint64_t *ret_ns, char name[ENDPOINT_TIME_BUF])
{
	const struct stack_past_moment *m = NULL;
	size_t cnt, i;

	if (at) {
		snprintf(name, ENDPOINT_TIME_BUF, "%s", endpoint_moment_text(at));
		*ret_fd = saver_fetch(parts->saver, pid, at);
		return *ret_fd < 0 ? -ENOENT : 0;
	}
	if (!epoch_s)
		return 0;
	cnt = moments_of(parts, pid, &m);
	if (!cnt || nearest_moment(m, cnt, epoch_s, &i))
		return -ENOENT;
	*ret_ns = m[i].time_ns;
	endpoint_time_text(seconds_of(&m[i]), name);
	return 0;
}

/* Answer with the difference from, or to, a saved profile, or from another process. */
static void answer_sides(const struct requests_parts *parts, struct http_exchange *x,
			 struct result_request *r)
{
	enum endpoint_moment at = r->from_at;
	pid_t pid = r->from_pid ? r->from_pid : r->pid;
	int err = find_side(parts, pid, r->from_at, r->from_s, &r->saved_fd, &r->moments.before_ns,
			    r->moments.before);

	if (!err) {
		at = r->to_at;
		pid = r->pid;
		err = find_side(parts, r->pid, r->to_at, r->to_s, &r->after_fd,
				&r->moments.after_ns, r->moments.after);
		if (err && result_has_saved(r))
			close(r->saved_fd);
	}
	if (err)
		refuse_side(parts, x, pid, at);
	else
		answer_profile(parts, x, r);
}

/* Answer with the difference of two moments. */
static void answer_moments(const struct requests_parts *parts, struct http_exchange *x,
			   struct result_request *r)
{
	const struct stack_past_moment *m = NULL;
	size_t cnt = moments_of(parts, r->pid, &m), before = 0, after = cnt - 1;

	if (!cnt) {
		refuse_past(parts, x, r->pid);
		return;
	}
	if (nearest_moment(m, cnt, r->from_s, &before) ||
	    (r->to_s && nearest_moment(m, cnt, r->to_s, &after))) {
		refuse_moment(x, r->pid, m, cnt);
		return;
	}
	if (before >= after) {
		http_error(x, 400,
			   "both times have the same nearest moment: /pid/%d/?live=0 lists the "
			   "moments\n",
			   r->pid);
		return;
	}
	r->moments.before_ns = m[before].time_ns;
	r->moments.after_ns = m[after].time_ns;
	endpoint_time_text(seconds_of(&m[before]), r->moments.before);
	endpoint_time_text(seconds_of(&m[after]), r->moments.after);
	answer_profile(parts, x, r);
}

/* Answer requests about one process, or all. */
static void answer_process(const struct requests_parts *parts, struct http_exchange *x,
			   struct result_request *r)
{
	if (r->at != ENDPOINT_NOW) {
		answer_kept(parts, x, r);
		return;
	}
	if (!r->pid && endpoint_is_of_one(r->endpoint)) {
		r->pid = only_process(parts, x);
		if (!r->pid)
			return;
	}
	for (int i = 0; i < 2; i++) {
		pid_t pid = i ? result_needs_from(r) : result_needs(r);

		if (!pid || tracker_follows(parts->tracker, pid))
			continue;
		http_error(x, 404, "process %d is not tracked: / lists the tracked processes\n",
			   pid);
		return;
	}
	if (r->endpoint == ENDPOINT_PPROF_INDEX)
		answer_pprof_index(x);
	else if (r->endpoint == ENDPOINT_SYMBOL)
		answer_symbol(parts, x, r);
	else if (r->endpoint == ENDPOINT_DIFF && !endpoint_is_of_moments(r))
		answer_sides(parts, x, r);
	else if (r->endpoint == ENDPOINT_DIFF)
		answer_moments(parts, x, r);
	else if (r->endpoint == ENDPOINT_GROWTH && !has_moments(parts, r->pid))
		refuse_past(parts, x, r->pid);
	else
		answer_profile(parts, x, r);
}

struct arg_reader {
	struct result_request *request;
	struct err why;
};

static int on_arg(void *ctx, const char *key, const char *value)
{
	struct arg_reader *a = ctx;

	return endpoint_set_arg(a->request, key, value, &a->why);
}

/* Lead to the page with a slash behind its name, by which its own links are found. A proxy may have its own names for the
 * folders above, so they are not named. */
static void lead_on(struct http_exchange *x, const struct result_request *r)
{
	const char *name = strrchr(http_request(x)->path, '/') + 1;
	char location[ENDPOINT_PATH_BUF + 16];
	const struct http_answer a = { .status = 301, .location = location, .text = location };

	snprintf(location, sizeof(location), "%.*s/%s", ENDPOINT_PATH_BUF, name,
		 r->is_still ? "?live=0" : "");
	http_reply(x, &a);
}

static void on_request(void *ctx, struct http_exchange *x)
{
	static const struct http_answer healthy = { .status = 200, .text = "ok\n" };
	const struct requests *as = ctx;
	struct result_request r;
	struct arg_reader args = { .request = &r };
	bool lacks_slash = false;

	if (endpoint_parse_path(http_request(x)->path, &r)) {
		lacks_slash = !endpoint_parse_folder(http_request(x)->path, &r);
		if (!lacks_slash) {
			http_error(x, 404,
				   "no such page; / lists the processes, heaptap serve "
				   "--help the pages\n");
			return;
		}
	}
	if (http_each_arg(x, on_arg, &args) || endpoint_check(&r, &args.why)) {
		http_error(x, 400, "%s\n", args.why.text);
		return;
	}
	if (lacks_slash) {
		lead_on(x, &r);
		return;
	}
	switch (r.endpoint) {
	case ENDPOINT_HEALTH:
		http_reply(x, &healthy);
		break;
	case ENDPOINT_INDEX:
	case ENDPOINT_METRICS:
	case ENDPOINT_PROCESS:
	case ENDPOINT_INDEX_JSON:
	case ENDPOINT_PROCESS_JSON:
		answer_page(&as->parts, x, &r);
		break;
	case ENDPOINT_VIEWER_SCRIPT:
		answer_script(x, report_viewer.script);
		break;
	case ENDPOINT_PAGE_SCRIPT:
		answer_script(x, page_files.script);
		break;
	case ENDPOINT_INDEX_SCRIPT:
		answer_script(x, page_files.index_script);
		break;
	case ENDPOINT_PROCESS_SCRIPT:
		answer_script(x, page_files.process_script);
		break;
	case ENDPOINT_VIEWER_STYLE:
		answer_style(x, report_viewer.style);
		break;
	case ENDPOINT_PAGE_STYLE:
		answer_style(x, page_files.style);
		break;
	default:
		answer_process(&as->parts, x, &r);
		break;
	}
}

static size_t body_cap(void *ctx, const char *path)
{
	struct result_request r;

	(void)ctx;
	return !endpoint_parse_path(path, &r) && r.endpoint == ENDPOINT_SYMBOL ? ENDPOINT_BODY_CAP :
										 0;
}

static void on_abandon(void *ctx, struct http_exchange *x)
{
	const struct requests *as = ctx;

	profiles_abandon(as->parts.profiles, x);
}

static int open_server(struct requests *as, const char *listen, const char *token_file)
{
	static const struct http_ops ops = { body_cap, on_request, on_abandon };
	char token[TOKEN_BYTES_CAP + 2] = "";
	struct err why = { .text = "out of memory" };
	struct http_options opts = { .listen = listen, .open_path = "/healthz" };
	int err = 0;

	if (token_file) {
		err = token_read(token_file, token, &why);
		opts.token = token;
	}
	if (!err)
		err = http_open(&opts, &ops, as, &as->server, &why);
	if (err)
		log_error("serve: %s", why.text);
	explicit_bzero(token, sizeof(token));
	return err;
}

int requests_open(const char *listen, const char *token_file, struct requests **ret,
		  struct http_server **ret_server)
{
	struct requests *as = calloc(1, sizeof(*as));
	int err;

	if (!as)
		return -ENOMEM;
	err = open_server(as, listen, token_file);
	if (err) {
		requests_close(as);
		return err;
	}
	*ret = as;
	*ret_server = as->server;
	return 0;
}

void requests_start(struct requests *as, const struct requests_parts *parts)
{
	as->parts = *parts;
}

void requests_close(struct requests *as)
{
	if (!as)
		return;
	http_close(as->server);
	free(as);
}

int requests_set_token(struct requests *as, const char *token_file)
{
	char token[TOKEN_BYTES_CAP + 2] = "";
	struct err why = { 0 };
	int err = token_file ? token_read(token_file, token, &why) : 0;

	if (!err)
		err = http_set_token(as->server, token_file ? token : NULL, &why);
	if (err)
		log_error("serve: %s", why.text);
	explicit_bzero(token, sizeof(token));
	return err;
}
