/* SPDX-License-Identifier: MIT */
/*
 * http.c - the HTTP server in the event loop (see http.h).
 *
 * libmicrohttpd parses and sends. It is polled through its epoll descriptor, so there are no threads. It times out
 * silent clients; `struct connections` ends those that send a byte now and then, and decides which one is ended when
 * there are many.
 *
 * An exchange whose answer is not ready is a suspended connection, which the library ignores. So this file checks
 * whether its client has gone. A client that closes its half and still reads counts as gone, too (as in Go).
 */
#include "http/http.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"

/*
 * The open connections of the server: how long each may take for what it does, and which one is
 * ended when there are too many.
 *
 * A connection asks (it has sent no whole request yet), reads an answer, or is held. Every new one is let in. Of
 * those that are not held there are at most CONNECTIONS_EACH_CAP of one address and CONNECTIONS_CAP of all: to make
 * room for a new one, the oldest of those that ask is ended, or else the oldest of those that read. So no client
 * keeps others out by being silent, or many: one that asks at once is answered before it is the oldest. The handler
 * must limit the held ones.
 */

#define CONNECTIONS_CAP 128
#define CONNECTIONS_EACH_CAP 32

enum connection_state { CONNECTION_ASKS, CONNECTION_READS, CONNECTION_HELD, CONNECTION_ENDED };

struct connections {
	struct connection *first; /* the newest */
};

#define ASK_NS (15 * NS_PER_S) /* from connecting, or the last answer, to a complete request */
#define READ_NS (120 * NS_PER_S) /* to read an answer */

struct connection {
	struct connection *next;
	struct connection **link; /* the pointer to this one */
	int fd;
	enum connection_state state;
	uint64_t deadline_ns;
	/* The part of the address that a client cannot choose: an IPv6 host has 2^64 addresses. 0: a unix socket. */
	uint64_t address;
};

static uint64_t address_of(const struct sockaddr *addr)
{
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct sockaddr_in6 *v6 = (const void *)addr;
	uint64_t high = 0;
	uint32_t low;

	if (addr && addr->sa_family == AF_INET)
		return (uint64_t)1 << 32 | v4->sin_addr.s_addr;
	if (!addr || addr->sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(&low, &v6->sin6_addr.s6_addr[12], sizeof(low));
		return (uint64_t)1 << 32 | low;
	}
	memcpy(&high, &v6->sin6_addr, sizeof(high));
	return high ? high : 1; /* ::1 */
}

/* Shut down: the kernel tells the library, which closes. */
static void end(struct connection *c)
{
	c->state = CONNECTION_ENDED;
	shutdown(c->fd, SHUT_RDWR);
}

struct crowd {
	unsigned int cnt;
	struct connection *oldest[2]; /* of those that ask, of those that read */
};

static void count(struct crowd *crowd, struct connection *c)
{
	crowd->cnt++;
	crowd->oldest[c->state] = c;
}

static void make_room(struct connections *cs, uint64_t address)
{
	struct crowd all = { 0 }, same = { 0 };

	for (struct connection *c = cs->first; c; c = c->next) {
		if (c->state != CONNECTION_ASKS && c->state != CONNECTION_READS)
			continue;
		count(&all, c);
		if (address && c->address == address)
			count(&same, c);
	}
	if (same.cnt >= CONNECTIONS_EACH_CAP)
		end(same.oldest[CONNECTION_ASKS] ? same.oldest[CONNECTION_ASKS] :
						   same.oldest[CONNECTION_READS]);
	else if (all.cnt >= CONNECTIONS_CAP)
		end(all.oldest[CONNECTION_ASKS] ? all.oldest[CONNECTION_ASKS] :
						  all.oldest[CONNECTION_READS]);
}

/* Say what it does from now on. NULL is fine. */
static void connection_set(struct connection *c, enum connection_state state)
{
	static const uint64_t limit_ns[] = {
		[CONNECTION_ASKS] = ASK_NS, [CONNECTION_READS] = READ_NS
	};

	if (!c || c->state == CONNECTION_ENDED)
		return;
	c->state = state;
	if (state == CONNECTION_ASKS || state == CONNECTION_READS)
		c->deadline_ns = now_ns() + limit_ns[state];
}

/* NULL: no memory; then the connection is not listed, and has no deadline. addr: of the client. */
static struct connection *connections_add(struct connections *cs, int fd,
					  const struct sockaddr *addr)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->address = address_of(addr);
	make_room(cs, c->address);
	connection_set(c, CONNECTION_ASKS);
	c->next = cs->first;
	c->link = &cs->first;
	if (c->next)
		c->next->link = &c->next;
	cs->first = c;
	return c;
}

/* Remove a connection that has been closed. NULL is fine. */
static void connections_remove(struct connection *c)
{
	if (!c)
		return;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	free(c);
}

/* True at the end of the stream, when nothing before it is unread. */
static bool has_hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Shut connections that are over their time, or have hung up while they asked. */
static void connections_end_slow(struct connections *cs)
{
	uint64_t now = now_ns();

	/* The library does not see a client hang up right behind half a request: both are one event, and it does
	 * not read on after the data. */
	for (struct connection *c = cs->first; c; c = c->next)
		if ((c->state == CONNECTION_ASKS && has_hung_up(c->fd)) ||
		    ((c->state == CONNECTION_ASKS || c->state == CONNECTION_READS) &&
		     c->deadline_ns < now))
			end(c);
}

/* Includes held connections, and a few that are ended but not closed yet. */
#define SOCKETS_CAP (2 * CONNECTIONS_CAP)
#define MEMORY_BYTES (32 << 10) /* per connection: the header, and data being sent */
#define FILE_BLOCK_BYTES (16 << 10)
#define SILENCE_S 10 /* nothing received, nothing sent */
#define BODIES_BYTES_CAP (16 << 20) /* of all requests in progress */

struct http_exchange {
	struct http_exchange *next;
	struct http_exchange **link;
	struct http_server *server;
	struct MHD_Connection *mhd;
	struct MHD_Response *response; /* an answer that came while it was held */
	unsigned status;
	struct http_request request;
	int fd; /* the connection's */
	char *body; /* of the request */
	size_t body_cap;
	bool is_admitted; /* the handler was called, or need not be */
	bool is_parked; /* until http_run() */
	bool has_answer;
	bool is_deferred;
	enum MHD_Result queued;
};

struct http_server {
	struct MHD_Daemon *mhd;
	struct listen_socket socket;
	struct http_ops ops;
	void *ctx;
	char token[TOKEN_BYTES_CAP + 1]; /* "": none is needed */
	char name[LISTEN_HOST_BYTES]; /* HOST of the listen option, or "" */
	const char *open_path; /* "": all pages need the token */
	struct connections connections;
	struct http_exchange *exchanges;
	size_t bodies_bytes; /* reserved for the bodies of all exchanges */
	bool is_closing; /* handlers may be gone */
	bool is_running, is_open_only, has_parked;
	int epoll_fd;
};

static void on_log(void *ctx, const char *fmt, va_list args)
{
	char line[256];

	(void)ctx;
	vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = '\0';
	log_debug("serve: http: %s", line);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **of_socket,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http_server *s = ctx;
	const union MHD_ConnectionInfo *socket, *client;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		connections_remove(*of_socket);
		*of_socket = NULL;
		return;
	}
	socket = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	client = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (socket)
		*of_socket = connections_add(&s->connections, socket->connect_fd,
					     client ? client->client_addr : NULL);
}

/* NULL: there was no memory for one. */
static struct connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

void http_end_slow(struct http_server *s)
{
	connections_end_slow(&s->connections);
	for (struct http_exchange *x = s->exchanges; x; x = x->next) {
		struct pollfd poller = { .fd = x->fd, .events = POLLRDHUP };

		if (!x->is_deferred || poll(&poller, 1, 0) <= 0)
			continue;
		if (s->ops.on_abandon)
			s->ops.on_abandon(s->ctx, x);
		http_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "nobody reads this\n");
	}
}

static void exchange_free(struct http_exchange *x)
{
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	x->server->bodies_bytes -= x->body_cap;
	free(x->body);
	if (x->response)
		MHD_destroy_response(x->response);
	free(x);
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **of_request,
			 enum MHD_RequestTerminationCode code)
{
	struct http_server *s = ctx;
	struct http_exchange *x = *of_request;

	(void)code;
	connection_set(connection_of(mhd), CONNECTION_ASKS);
	if (!x)
		return;
	if (x->is_deferred && s->ops.on_abandon)
		s->ops.on_abandon(s->ctx, x);
	exchange_free(x);
	*of_request = NULL;
}

static bool has_body(struct MHD_Connection *mhd)
{
	const char *bytes = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");

	return (bytes && strcmp(bytes, "0")) ||
	       MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Transfer-Encoding");
}

/* True for "Basic ..." with the token as password and any name, which `go tool pprof http://x:TOKEN@HOST/` sends. */
static bool has_password(const struct http_exchange *x)
{
	char *password = NULL, *name = MHD_basic_auth_get_username_password(x->mhd, &password);
	bool is_right = password && token_equal(password, x->server->token);

	MHD_free(name);
	MHD_free(password);
	return is_right;
}

static bool is_authorized(const struct http_exchange *x)
{
	const char *given =
		MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

	return !x->server->token[0] || !strcmp(x->request.path, x->server->open_path) ||
	       token_authorizes(given, x->server->token) || has_password(x);
}

struct header_count {
	const char *name;
	unsigned int cnt;
};

static enum MHD_Result count_header(void *ctx, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	struct header_count *c = ctx;

	(void)kind, (void)value;
	c->cnt += !strcasecmp(key, c->name);
	return MHD_YES;
}

static unsigned int header_cnt(const struct http_exchange *x, const char *name)
{
	struct header_count c = { name, 0 };

	MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, count_header, &c);
	return c.cnt;
}

/*
 * Return what is wrong if a proxy could read the header in another way than we do, or NULL. RFC 9112, 3.2: exactly
 * one valid Host; 6.3: one length of the body.
 */
static const char *find_ambiguity(const struct http_exchange *x, const char *version)
{
	unsigned int host_cnt = header_cnt(x, MHD_HTTP_HEADER_HOST);
	const char *host =
		MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	const char *bytes = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND,
							MHD_HTTP_HEADER_CONTENT_LENGTH);
	char name[LISTEN_HOST_BYTES];

	if (host_cnt != 1 && (host_cnt || strcmp(version, MHD_HTTP_VERSION_1_0)))
		return "a request must have one Host header\n";
	if (host && listen_split_host(host, name))
		return "a Host header must be NAME or NAME:PORT\n";
	if (header_cnt(x, MHD_HTTP_HEADER_CONTENT_LENGTH) > 1 ||
	    (bytes && (!*bytes || bytes[strspn(bytes, "0123456789")])) ||
	    (bytes && header_cnt(x, MHD_HTTP_HEADER_TRANSFER_ENCODING)))
		return "a body must have one length, a number\n";
	return NULL;
}

/* A foreign page whose name leads here asks for that name. */
static bool is_for_us(const struct http_exchange *x)
{
	const char *host =
		MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	return x->server->token[0] || x->server->socket.unix_path || !host ||
	       listen_is_own_name(host, x->server->name);
}

/* Reserve room for the coming body. */
static void expect_body(struct http_exchange *x, size_t cap)
{
	const char *text = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_CONTENT_LENGTH);
	unsigned long long bytes = text ? strtoull(text, NULL, 10) : 0;

	if (!text)
		http_error(x, MHD_HTTP_LENGTH_REQUIRED, "a body needs a Content-Length\n");
	else if (bytes > cap)
		http_error(x, MHD_HTTP_CONTENT_TOO_LARGE,
			   "a body may have at most %zu "
			   "bytes\n",
			   cap);
	else if (x->server->bodies_bytes + bytes > BODIES_BYTES_CAP)
		http_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests at once\n");
	else if (!(x->body = malloc(bytes + 1)))
		http_error(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	else
		x->body_cap = bytes;
	x->request.body = x->body;
	x->server->bodies_bytes += x->body_cap;
}

/*
 * Answer requests that no handler takes. An answer now, after the header was read, ends the connection: a body is
 * never read, nor is that of a client without the token.
 */
static void refuse(struct http_exchange *x, const char *method, const char *version)
{
	size_t cap = x->server->ops.body_cap(x->server->ctx, x->request.path);
	const char *ambiguity = find_ambiguity(x, version);

	if (ambiguity)
		http_error(x, MHD_HTTP_BAD_REQUEST, "%s", ambiguity);
	else if (!is_for_us(x))
		http_error(x, MHD_HTTP_MISDIRECTED_REQUEST,
			   "use an IP address, localhost or the HOST of --listen in the URL, or "
			   "start heaptap with --token-file\n");
	else if (x->request.is_post && cap && !is_authorized(x))
		http_error(x, MHD_HTTP_UNAUTHORIZED,
			   "this server requires a token: that of its --token-file\n");
	else if (x->request.is_post && cap)
		expect_body(x, cap);
	else if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		http_error(x, MHD_HTTP_METHOD_NOT_ALLOWED, "%s are allowed here\n",
			   cap ? "GET, HEAD and POST" : "only GET and HEAD");
	else if (has_body(x->mhd))
		http_error(x, MHD_HTTP_BAD_REQUEST,
			   "a request with a body is not accepted "
			   "here\n");
	x->is_admitted = x->has_answer;
}

static void admit(struct http_server *s, struct http_exchange *x)
{
	if (s->is_open_only && strcmp(x->request.path, s->open_path)) {
		x->is_parked = s->has_parked = true;
		MHD_suspend_connection(x->mhd);
		return;
	}
	x->is_admitted = true;
	if (s->is_closing)
		http_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "heaptap ends\n");
	else if (!is_authorized(x))
		http_error(x, MHD_HTTP_UNAUTHORIZED,
			   "this server requires a token: that of its --token-file\n");
	else
		s->ops.on_request(s->ctx, x);
}

static struct http_exchange *begin_exchange(struct http_server *s, struct MHD_Connection *mhd,
					    const char *url, const char *method)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_exchange *x = info ? calloc(1, sizeof(*x)) : NULL;

	if (!x)
		return NULL;
	x->server = s;
	x->mhd = mhd;
	x->fd = info->connect_fd;
	x->request.path = url;
	x->request.is_head = !strcmp(method, "HEAD");
	x->request.is_post = !strcmp(method, "POST");
	x->request.accept =
		MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	x->queued = MHD_YES;
	x->next = s->exchanges;
	x->link = &s->exchanges;
	if (x->next)
		x->next->link = &x->next;
	s->exchanges = x;
	return x;
}

/* The library passes no more bytes than the header announced. */
static enum MHD_Result take_body(struct http_exchange *x, const char *upload, size_t bytes)
{
	if (bytes > x->body_cap - x->request.body_bytes)
		return MHD_NO;
	memcpy(x->body + x->request.body_bytes, upload, bytes);
	x->request.body_bytes += bytes;
	return MHD_YES;
}

/* Called for a request when its header is there, for each piece of a body, at its end, and once more after it was
 * held. */
static enum MHD_Result on_access(void *ctx, struct MHD_Connection *mhd, const char *url,
				 const char *method, const char *version, const char *upload,
				 size_t *upload_bytes, void **of_request)
{
	struct http_server *s = ctx;
	struct http_exchange *x = *of_request;
	size_t bytes = *upload_bytes;

	if (!x) {
		x = begin_exchange(s, mhd, url, method);
		if (!x)
			return MHD_NO;
		*of_request = x;
		if (!x->request.is_post)
			connection_set(connection_of(mhd), CONNECTION_READS);
		refuse(x, method, version);
		return x->queued;
	}
	*upload_bytes = 0;
	if (!x->is_admitted && bytes)
		return take_body(x, upload, bytes);
	connection_set(connection_of(mhd), CONNECTION_READS);
	if (!x->is_admitted) {
		admit(s, x);
		return x->queued;
	}
	if (!x->response)
		return MHD_YES;
	return MHD_queue_response(mhd, x->status, x->response); /* resumed */
}

void http_defer(struct http_exchange *x)
{
	x->is_deferred = true;
	connection_set(connection_of(x->mhd), CONNECTION_HELD);
	MHD_suspend_connection(x->mhd);
}

static ssize_t no_body(void *ctx, uint64_t off, char *buf, size_t bytes)
{
	(void)ctx, (void)off, (void)buf, (void)bytes;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/*
 * Read a body from a file. MHD's own way is sendfile(), which may send less than asked for while the socket has
 * room (a signal, pages that come in pieces): waiting for the edge of a writable socket would then never end.
 */
static ssize_t file_body(void *ctx, uint64_t off, char *buf, size_t bytes)
{
	const int *fd = ctx;
	ssize_t n = pread(*fd, buf, bytes, (off_t)off);

	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void file_body_end(void *ctx)
{
	int *fd = ctx;

	close(*fd);
	free(fd);
}

/* The response owns fd from here on. */
static struct MHD_Response *file_response(int fd)
{
	struct MHD_Response *r = NULL;
	int *ctx = malloc(sizeof(*ctx));
	struct stat st;

	if (ctx && !fstat(fd, &st)) {
		*ctx = fd;
		r = MHD_create_response_from_callback((uint64_t)st.st_size, FILE_BLOCK_BYTES,
						      file_body, ctx, file_body_end);
	}
	if (!r) {
		close(fd);
		free(ctx);
	}
	return r;
}

static struct MHD_Response *make_response(const struct http_answer *a)
{
	if (a->text)
		return MHD_create_response_from_buffer(a->text_bytes ? a->text_bytes :
								       strlen(a->text),
						       (void *)a->text, MHD_RESPMEM_MUST_COPY);
	if (a->fd < 0)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 256, no_body, NULL,
							 NULL);
	return file_response(a->fd);
}

static void add_headers(const struct http_exchange *x, struct MHD_Response *r,
			const struct http_answer *a)
{
	char disposition[128];

	MHD_add_response_header(r, "Content-Type", a->type ? a->type : "text/plain; charset=utf-8");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	/* The pages have links, scripts and styles of this server. Anything else that a process's name might bring in
	 * is inactive, and no page of another site can embed these to have them clicked. (The page of a process embeds
	 * its flame graph.) */
	MHD_add_response_header(
		r, "Content-Security-Policy",
		a->has_script ? "default-src 'none'; script-src 'self'; style-src 'self'; "
				"connect-src 'self'; frame-src 'self'; base-uri 'none'; "
				"frame-ancestors 'self'; form-action 'self'" :
				"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
				"frame-ancestors 'none'; form-action 'none'");
	MHD_add_response_header(r, "X-Frame-Options", a->has_script ? "SAMEORIGIN" : "DENY");
	if (a->is_go_error)
		MHD_add_response_header(r, "X-Go-Pprof", "1");
	if (a->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(r, "WWW-Authenticate", "Basic realm=\"heaptap\"");
	if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow",
					x->server->ops.body_cap(x->server->ctx, x->request.path) ?
						"GET, HEAD, POST" :
						"GET, HEAD");
	if (a->location)
		MHD_add_response_header(r, "Location", a->location);
	if (a->file_name) {
		snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"",
			 a->file_name);
		MHD_add_response_header(r, "Content-Disposition", disposition);
	}
}

void http_reply(struct http_exchange *x, const struct http_answer *a)
{
	struct MHD_Response *r = make_response(a);

	x->has_answer = true;
	if (!r) {
		/* No memory: the connection is closed, which the client treats as a failure. */
		x->queued = MHD_NO;
		r = x->is_deferred ?
			    MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT) :
			    NULL;
	} else {
		add_headers(x, r, a);
	}
	x->status = x->queued == MHD_NO ? MHD_HTTP_INTERNAL_SERVER_ERROR : a->status;
	if (x->is_deferred) {
		x->is_deferred = false;
		x->response = r;
		MHD_resume_connection(x->mhd);
		return;
	}
	if (r) {
		x->queued = MHD_queue_response(x->mhd, x->status, r);
		MHD_destroy_response(r);
	}
}

void http_error(struct http_exchange *x, unsigned status, const char *fmt, ...)
{
	char text[512];
	const struct http_answer a = { .status = status, .text = text, .is_go_error = true };
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	http_reply(x, &a);
}

const struct http_request *http_request(const struct http_exchange *x)
{
	return &x->request;
}

struct arg_walk {
	http_arg_fn fn;
	void *ctx;
	int result;
};

static enum MHD_Result on_arg(void *ctx, enum MHD_ValueKind kind, const char *key,
			      const char *value)
{
	struct arg_walk *w = ctx;

	(void)kind;
	w->result = w->fn(w->ctx, key, value ? value : "");
	return w->result ? MHD_NO : MHD_YES;
}

int http_each_arg(struct http_exchange *x, http_arg_fn fn, void *ctx)
{
	struct arg_walk w = { fn, ctx, 0 };

	MHD_get_connection_values(x->mhd, MHD_GET_ARGUMENT_KIND, on_arg, &w);
	return w.result;
}

/* As in the library, but an escape stays if it would end a string or begin another name of a path. */
static size_t unescape(void *ctx, struct MHD_Connection *mhd, char *text)
{
	char *to = text;

	(void)ctx, (void)mhd;
	for (const char *from = text; *from; from++) {
		int high = *from == '%' ? hex_digit(from[1]) : -1;
		int low = high < 0 ? -1 : hex_digit(from[2]);
		int c = low < 0 ? 0 : high << 4 | low;

		if (c && c != '/') {
			*to++ = (char)c;
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

static int start(struct http_server *s)
{
	const union MHD_DaemonInfo *info;

	s->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
				  NULL, NULL, on_access, s, MHD_OPTION_EXTERNAL_LOGGER, on_log,
				  NULL, MHD_OPTION_LISTEN_SOCKET, s->socket.fd,
				  MHD_OPTION_CONNECTION_LIMIT, (unsigned)SOCKETS_CAP,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES,
				  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
				  MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
				  MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				  MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
	if (!s->mhd)
		return -EIO;
	info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -EIO;
	s->epoll_fd = info->epoll_fd;
	return 0;
}

int http_open(const struct http_options *opts, const struct http_ops *ops, void *ctx,
	      struct http_server **ret, struct err *why)
{
	struct http_server *s = calloc(1, sizeof(*s));
	const char *port;
	int err;

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->ctx = ctx;
	s->open_path = opts->open_path ? opts->open_path : "";
	if (opts->token)
		snprintf(s->token, sizeof(s->token), "%s", opts->token);
	err = listen_open(opts->listen, !s->token[0], &s->socket, why);
	if (err) {
		free(s);
		return err;
	}
	if (listen_parse(opts->listen, s->name, &port))
		s->name[0] = '\0';
	err = start(s);
	if (err) {
		err_set(why, err, "cannot start the HTTP library");
		http_close(s);
		return err;
	}
	*ret = s;
	return 0;
}

int http_set_token(struct http_server *s, const char *token, struct err *why)
{
	if (!token && !s->socket.is_local)
		return err_set(why, -EPERM,
			       "other machines can reach '%s': this needs a token file",
			       s->socket.address);
	explicit_bzero(s->token, sizeof(s->token));
	if (token)
		snprintf(s->token, sizeof(s->token), "%s", token);
	return 0;
}

static void resume_parked(struct http_server *s)
{
	for (struct http_exchange *x = s->has_parked ? s->exchanges : NULL; x; x = x->next) {
		if (!x->is_parked)
			continue;
		x->is_parked = false;
		MHD_resume_connection(x->mhd);
	}
	s->has_parked = false;
}

void http_close(struct http_server *s)
{
	if (!s)
		return;
	s->is_closing = true; /* requests may come while these are sent */
	if (s->mhd) {
		resume_parked(s);
		for (struct http_exchange *x = s->exchanges; x; x = x->next)
			if (x->is_deferred)
				http_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "heaptap ends\n");
		MHD_run(s->mhd);
		MHD_run(s->mhd); /* sends the answers that the first call resumed */
		MHD_stop_daemon(s->mhd); /* closes the socket */
		if (s->socket.unix_path)
			unlink(s->socket.unix_path);
	} else {
		listen_close(&s->socket);
	}
	explicit_bzero(s->token, sizeof(s->token));
	free(s);
}

const char *http_address(const struct http_server *s)
{
	return s->socket.address;
}

int http_fd(const struct http_server *s)
{
	return s->epoll_fd;
}

int http_run(struct http_server *s)
{
	enum MHD_Result result;

	resume_parked(s);
	s->is_running = true;
	result = MHD_run(s->mhd);
	s->is_running = false;
	return result == MHD_YES ? 0 : -EIO;
}

void http_run_open(struct http_server *s)
{
	if (s->is_running)
		return;
	s->is_open_only = true;
	MHD_run(s->mhd);
	s->is_open_only = false;
}

int http_wait_ms(const struct http_server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (s->has_parked)
		return 0;
	if (MHD_get_timeout(s->mhd, &ms) != MHD_YES)
		return -1;
	return ms > 1000 ? 1000 : (int)ms;
}
