/* SPDX-License-Identifier: MIT */
/* push_http.c - see push_http.h. */
#include "serve/push_http.h"

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/curl_setup.h"
#include "base/err.h"
#include "base/log.h"

#define EVENTS_AT_ONCE 16
/* An answer is empty, a sentence, or a small message. A server that sends more than the maximum is not one that we
 * talk to. */
#define BODY_KEPT 8192
#define BODY_MAX (1 << 20)
/* A server that asks for a longer pause gets this one. */
#define PAUSE_MAX_S 3600

struct push_http {
	struct push_http_options opts;
	push_http_done_fn done;
	void *ctx;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers; /* of the request in progress */
	int epoll_fd, timer_fd, wake_fd; /* libcurl's timer, the caller's */
	bool is_busy;
	struct push_http_call call; /* the request in progress */
	struct push_grpc grpc;
	char body[BODY_KEPT];
	size_t body_bytes; /* received in all */
	char error[CURL_ERROR_SIZE];
};

int push_http_fd(const struct push_http *h)
{
	return h->epoll_fd;
}

void push_http_wake_at(struct push_http *h, uint64_t due_ns)
{
	const struct itimerspec when = { .it_value = { (time_t)(due_ns / NS_PER_S),
						       (long)(due_ns % NS_PER_S) } };

	timerfd_settime(h->wake_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
	struct push_http *h = ctx;
	struct epoll_event event = { .data.fd = fd };

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	if (epoll_ctl(h->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
		return -1;
	curl_multi_assign(h->multi, fd, h);
	return 0;
}

/* Programs that we start must not get libcurl's sockets. */
static int on_new_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx;
	(void)purpose;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
	const struct push_http *h = ctx;
	struct itimerspec when = { 0 };

	(void)multi;
	if (timeout_ms == 0)
		when.it_value.tv_nsec = 1; /* 0 would disarm the timer */
	if (timeout_ms > 0) {
		when.it_value.tv_sec = timeout_ms / 1000;
		when.it_value.tv_nsec = timeout_ms % 1000 * (long)NS_PER_MS;
	}
	return timerfd_settime(h->timer_fd, 0, &when, NULL) < 0 ? -1 : 0;
}

/* Called for headers and, after the body, trailers. */
static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct push_http *h = ctx;

	push_parca_header(&h->grpc, line, size * n);
	return size * n;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct push_http *h = ctx;
	size_t bytes = size * n;

	if (h->body_bytes < BODY_KEPT)
		memcpy(h->body + h->body_bytes, data,
		       bytes < BODY_KEPT - h->body_bytes ? bytes : BODY_KEPT - h->body_bytes);
	h->body_bytes += bytes;
	return h->body_bytes > BODY_MAX ? 0 : bytes;
}

static int add_header(struct push_http *h, const char *line)
{
	struct curl_slist *longer = curl_slist_append(h->headers, line);

	if (!longer)
		return -ENOMEM;
	h->headers = longer;
	return 0;
}

static int add_credentials(struct push_http *h)
{
	const struct push_identity *id = &h->opts.identity;
	char secret[PUSH_SECRET_MAX], line[PUSH_SECRET_MAX + 64];
	struct err why;
	int err = 0;

	if (id->token_file) {
		err = push_secret_read(id->token_file, secret, &why);
		if (!err) {
			snprintf(line, sizeof(line), "authorization: Bearer %s", secret);
			err = add_header(h, line);
		} else {
			log_warn("%s", why.text);
		}
	}
	if (!err && id->basic_file) {
		err = push_secret_read(id->basic_file, secret, &why);
		if (err) {
			log_warn("%s", why.text);
		} else {
			curl_easy_setopt(h->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
			if (curl_easy_setopt(h->easy, CURLOPT_USERPWD, secret) != CURLE_OK)
				err = -ENOMEM;
		}
	}
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(line, sizeof(line));
	if (!err && id->tenant) {
		snprintf(line, sizeof(line), "x-scope-orgid: %s", id->tenant);
		err = add_header(h, line);
	}
	return err;
}

static int set_headers(struct push_http *h)
{
	uint64_t timeout_ns = h->call.read ? PUSH_HTTP_LONG_NS : h->call.timeout_ns;
	char line[64];
	int err;

	curl_slist_free_all(h->headers);
	h->headers = NULL;
	err = add_header(h, "expect:"); /* send the body without asking first if it is welcome */
	if (h->call.put_url)
		return err;
	if (!err && h->opts.target.kind == PUSH_PARCA) {
		snprintf(line, sizeof(line), "grpc-timeout: %llum",
			 (unsigned long long)(timeout_ns / NS_PER_MS));
		err = add_header(h, "content-type: application/grpc+proto");
		if (!err)
			err = add_header(h, "te: trailers");
		if (!err)
			err = add_header(h, line);
	} else if (!err) {
		err = add_header(h, "content-type: application/proto");
		if (!err)
			err = add_header(h, "connect-protocol-version: 1");
	}
	return err ? err : add_credentials(h);
}

static size_t on_read(char *buf, size_t size, size_t n, void *ctx)
{
	struct push_http *h = ctx;
	ssize_t got = h->call.read(h->call.read_ctx, buf, size * n);

	return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static CURLcode set_up_body(struct push_http *h)
{
	CURL *e = h->easy;
	CURLcode rc = CURLE_OK;

	if (!h->call.put_url)
		CURL_SET(rc, e, CURLOPT_POST, 1L);
	else
		CURL_SET(rc, e, CURLOPT_UPLOAD, 1L);
	if (!h->call.read) {
		CURL_SET(rc, e, CURLOPT_POSTFIELDS, h->call.body);
		CURL_SET(rc, e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)h->call.body_bytes);
		return rc;
	}
	CURL_SET(rc, e, CURLOPT_READFUNCTION, on_read);
	CURL_SET(rc, e, CURLOPT_READDATA, h);
	CURL_SET(rc, e, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)PUSH_HTTP_LONG_SPEED);
	if (!h->call.put_url)
		CURL_SET(rc, e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)h->call.read_bytes);
	else
		CURL_SET(rc, e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)h->call.read_bytes);
	return rc;
}

static CURLcode set_up_limits(struct push_http *h)
{
	long timeout_ms = (long)(h->opts.timeout_ns / NS_PER_MS);
	CURL *e = h->easy;
	CURLcode rc = CURLE_OK;

	CURL_SET(rc, e, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Give up on a name that nobody resolves without waiting for the thread that asks: the caller, who polls,
	 * would wait as well. */
	CURL_SET(rc, e, CURLOPT_QUICK_EXIT, 1L);
#endif
	if (!h->call.read) {
		CURL_SET(rc, e, CURLOPT_TIMEOUT_MS, (long)(h->call.timeout_ns / NS_PER_MS));
		return rc;
	}
	CURL_SET(rc, e, CURLOPT_TIMEOUT_MS, (long)(PUSH_HTTP_LONG_NS / NS_PER_MS));
	CURL_SET(rc, e, CURLOPT_LOW_SPEED_LIMIT, 1L);
	CURL_SET(rc, e, CURLOPT_LOW_SPEED_TIME, timeout_ms / 1000 + 1);
	return rc;
}

/* Make the address of another gRPC call of the same server: path is "/SERVICE/METHOD". */
static void push_target_call_url(const struct push_target *t, const char *path,
				 char ret[PUSH_TARGET_URL_BYTES])
{
	bool is_v6 = strchr(t->host, ':');

	snprintf(ret, PUSH_TARGET_URL_BYTES, "%s://%s%s%s:%u%s", t->is_tls ? "https" : "http",
		 is_v6 ? "[" : "", t->host, is_v6 ? "]" : "", t->port, path);
}

/* Set everything but the headers anew for each request: the previous one may have been of another kind. */
static int set_up_easy(struct push_http *h)
{
	const struct push_target *t = &h->opts.target;
	long version = h->call.put_url	     ? CURL_HTTP_VERSION_1_1 :
		       t->is_tls	     ? CURL_HTTP_VERSION_2TLS :
		       t->kind == PUSH_PARCA ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE :
					       CURL_HTTP_VERSION_1_1;
	char url[PUSH_TARGET_URL_BYTES];
	CURL *e = h->easy;
	CURLcode rc;

	curl_easy_reset(e);
	/* An address from the server must not lead to anything else. */
	rc = curl_setup(e, t->is_tls, h->opts.identity.ca_file, h->error);
	if (rc == CURLE_OK)
		rc = set_up_body(h);
	if (rc == CURLE_OK)
		rc = set_up_limits(h);
	if (h->call.grpc_path)
		push_target_call_url(t, h->call.grpc_path, url);
	CURL_SET(rc, e, CURLOPT_URL,
		 h->call.put_url   ? h->call.put_url :
		 h->call.grpc_path ? url :
				     t->url);
	CURL_SET(rc, e, CURLOPT_HTTP_VERSION, version);
	CURL_SET(rc, e, CURLOPT_TCP_KEEPALIVE, 1L);
	CURL_SET(rc, e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	CURL_SET(rc, e, CURLOPT_HEADERFUNCTION, on_header);
	CURL_SET(rc, e, CURLOPT_HEADERDATA, h);
	CURL_SET(rc, e, CURLOPT_WRITEFUNCTION, on_body);
	CURL_SET(rc, e, CURLOPT_WRITEDATA, h);
	if (version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) {
		/* A proxy would speak HTTP/1.1, which gRPC without TLS cannot use. */
		CURL_SET(rc, e, CURLOPT_NOPROXY, "*");
		/* libcurl 7.88 cannot use such a connection again ("Error in the HTTP2 framing layer"): make one
		 * for each request. */
		CURL_SET(rc, e, CURLOPT_FRESH_CONNECT, 1L);
		CURL_SET(rc, e, CURLOPT_FORBID_REUSE, 1L);
	}
	return rc == CURLE_OK ? 0 : -ENOTSUP;
}

static int open_timer(const struct push_http *h, int *ret_fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	*ret_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (*ret_fd < 0)
		return -errno;
	event.data.fd = *ret_fd;
	return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, *ret_fd, &event) < 0 ? -errno : 0;
}

static int set_up_multi(struct push_http *h)
{
	int err;

	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (h->epoll_fd < 0)
		return -errno;
	err = open_timer(h, &h->timer_fd);
	if (!err)
		err = open_timer(h, &h->wake_fd);
	if (err)
		return err;
	h->multi = curl_multi_init();
	h->easy = curl_easy_init();
	if (!h->multi || !h->easy)
		return -ENOMEM;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L);
	return set_up_easy(h);
}

static bool is_local(const char *host)
{
	return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

/* A line end in the tenant would begin another header. */
bool push_tenant_is_valid(const char *tenant)
{
	size_t n = strlen(tenant);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)tenant[i] < ' ' || tenant[i] == 0x7f)
			return false;
	return n && n <= PUSH_TENANT_MAX;
}

static void warn_of_clear_secrets(const struct push_http_options *opts)
{
	if ((opts->identity.token_file || opts->identity.basic_file) && !opts->target.is_tls &&
	    !is_local(opts->target.host))
		log_warn(
			"push: others on the network can read the token or password, because '%s' has no "
			"TLS; use the +https form",
			opts->target.name);
}

/* Warn early: the request would fail with "unable to get local issuer certificate", which does not say what to do. */
static void warn_of_no_authorities(const struct push_http_options *opts)
{
	if (opts->target.is_tls && !opts->identity.ca_file && !curl_has_authorities())
		log_warn("push: this machine has no CA certificates, so '%s' cannot be trusted; "
			 "install ca-certificates, or give --push-ca-file FILE",
			 opts->target.name);
}

void push_http_set_identity(struct push_http *h, const struct push_identity *identity)
{
	const struct push_identity *old = &h->opts.identity;
	bool is_new = (identity->token_file && !old->token_file) ||
		      (identity->basic_file && !old->basic_file);

	h->opts.identity = *identity;
	if (is_new)
		warn_of_clear_secrets(&h->opts);
}

int push_http_open(const struct push_http_options *opts, push_http_done_fn done, void *ctx,
		   struct push_http **ret)
{
	struct push_http *h;
	int err;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	h = calloc(1, sizeof(*h));
	if (!h) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	h->opts = *opts;
	h->done = done;
	h->ctx = ctx;
	h->epoll_fd = h->timer_fd = h->wake_fd = -1;
	err = 0;
	if (opts->identity.tenant && !push_tenant_is_valid(opts->identity.tenant)) {
		log_error("push: the tenant is empty, too long, or has control characters in it");
		err = -EINVAL;
	}
	if (!err)
		err = set_up_multi(h);
	if (!err)
		err = set_headers(h); /* reports a bad secret at start */
	if (err) {
		push_http_close(h);
		return err;
	}
	warn_of_clear_secrets(opts);
	warn_of_no_authorities(opts);
	*ret = h;
	return 0;
}

void push_http_close(struct push_http *h)
{
	if (!h)
		return;
	if (h->is_busy)
		curl_multi_remove_handle(h->multi, h->easy);
	/* The multi handle closes its sockets through on_socket(), so close the fds last. */
	curl_easy_cleanup(h->easy);
	curl_multi_cleanup(h->multi);
	curl_slist_free_all(h->headers);
	if (h->timer_fd >= 0)
		close(h->timer_fd);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	free(h);
	curl_global_cleanup();
}

int push_http_call(struct push_http *h, const struct push_http_call *call)
{
	int err;

	if (h->is_busy)
		return -EBUSY;
	h->call = *call;
	if (!h->call.timeout_ns)
		h->call.timeout_ns = h->opts.timeout_ns;
	err = set_up_easy(h);
	if (!err)
		err = set_headers(h);
	if (err)
		return err;
	memset(&h->grpc, 0, sizeof(h->grpc));
	h->body_bytes = 0;
	h->error[0] = 0;
	if (curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers) != CURLE_OK)
		return -EINVAL;
	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
		return -ENOMEM;
	h->is_busy = true;
	return 0;
}

/* Only a part of the body was taken: the cause may be the network, or the body. */
static bool is_too_slow(const struct push_http *h, CURLcode rc)
{
	curl_off_t sent = 0;

	curl_easy_getinfo(h->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	return rc == CURLE_OPERATION_TIMEDOUT && sent > 0 && (uint64_t)sent < h->call.body_bytes;
}

static uint32_t wanted_pause_s(const struct push_http *h, long status)
{
	curl_off_t wanted = 0;

	if ((status != 429 && status != 503) ||
	    curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &wanted) != CURLE_OK || wanted < 0)
		return 0;
	return wanted < PAUSE_MAX_S ? (uint32_t)wanted : PAUSE_MAX_S;
}

static void answer_of(const struct push_http *h, CURLcode rc, struct push_answer *ret)
{
	size_t kept_bytes = h->body_bytes < BODY_KEPT ? h->body_bytes : BODY_KEPT;
	long status = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	if (h->call.put_url && rc == CURLE_OK) {
		push_answer_set(ret, push_http_verdict(status), "HTTP status %ld", status);
	} else if (h->opts.target.kind == PUSH_PARCA && h->grpc.has_status) {
		/* Valid even if the stream was cut off after it: a server may answer before it has read all. */
		push_parca_answer(&h->grpc, status, ret);
	} else if (rc != CURLE_OK) {
		push_answer_set(ret, is_too_slow(h, rc) ? PUSH_RETRY_FEW : PUSH_RETRY, "%s",
				h->error[0] ? h->error : curl_easy_strerror(rc));
	} else if (h->opts.target.kind == PUSH_PARCA) {
		push_parca_answer(&h->grpc, status, ret);
	} else {
		push_pyroscope_answer(status, h->body, kept_bytes, ret);
	}
	ret->body = (const uint8_t *)h->body;
	ret->body_bytes = kept_bytes;
	ret->pause_s = wanted_pause_s(h, status);
}

static void take_results(struct push_http *h)
{
	struct push_answer answer;
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(h->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		answer_of(h, msg->data.result, &answer);
		curl_multi_remove_handle(h->multi, h->easy);
		h->is_busy = false;
		h->done(h->ctx, &answer);
	}
}

void push_http_run(struct push_http *h)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int n = epoll_wait(h->epoll_fd, events, EVENTS_AT_ONCE, 0), running;
	uint64_t expirations;

	for (int i = 0; i < n; i++) {
		bool is_timer = events[i].data.fd == h->timer_fd;

		if (is_timer || events[i].data.fd == h->wake_fd) {
			/* EAGAIN: the timer was set again meanwhile. */
			if (read(events[i].data.fd, &expirations, sizeof(expirations)) > 0 &&
			    is_timer)
				curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0,
							 &running);
			continue;
		}
		curl_multi_socket_action(
			h->multi, events[i].data.fd,
			(events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
				(events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				(events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
			&running);
	}
	take_results(h);
}

static int check_line(const char *path, char *line, struct err *why)
{
	size_t n = strcspn(line, "\n");

	while (n && strchr(" \t\r", line[n - 1]))
		n--;
	line[n] = 0;
	if (!n)
		return err_set(why, -EINVAL, "push: '%s' is empty", path);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			return err_set(why, -EINVAL, "push: '%s' has control characters in it",
				       path);
	return 0;
}

int push_secret_read(const char *path, char ret[PUSH_SECRET_MAX], struct err *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err = err_set_os(why, -errno, "push: cannot read '%s'", path);
	} else if (!S_ISREG(st.st_mode)) {
		err = err_set(why, -EINVAL, "push: '%s' is not a regular file", path);
	} else if (st.st_mode & (S_IROTH | S_IWOTH)) {
		err = err_set(why, -EACCES, "push: others can read or write '%s': chmod o= '%s'",
			      path, path);
	} else if ((n = read(fd, ret, PUSH_SECRET_MAX)) < 0) {
		err = err_set_os(why, -errno, "push: cannot read '%s'", path);
	} else if (n == PUSH_SECRET_MAX) {
		err = err_set(why, -EINVAL, "push: '%s' has more than %d bytes", path,
			      PUSH_SECRET_MAX - 1);
	}
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	ret[n] = 0;
	return check_line(path, ret, why);
}
