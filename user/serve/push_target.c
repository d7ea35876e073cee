/* SPDX-License-Identifier: MIT */
/* push_target.c - see push_http.h. */
#include "serve/push_http.h"

#include <arpa/inet.h>

#include "base/err.h"
#include "base/hmap.h"

static const struct {
	const char *prefix;
	enum push_kind kind;
	bool is_tls;
} schemes[] = {
	{ "parca+http://", PUSH_PARCA, false },
	{ "parca+https://", PUSH_PARCA, true },
	{ "pyroscope+http://", PUSH_PYROSCOPE, false },
	{ "pyroscope+https://", PUSH_PYROSCOPE, true },
};

/* Paths of the methods, below the prefix of the server, if any. */
static const char *const paths[] = {
	[PUSH_PARCA] = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
	[PUSH_PYROSCOPE] = "/push.v1.PusherService/Push",
};

void push_target_redact(const char *text, char *buf, size_t buf_bytes)
{
	const char *scheme_end = strstr(text, "://"), *at = strrchr(text, '@');
	const char *user = scheme_end ? scheme_end + 3 : text;

	if (at && at >= user)
		snprintf(buf, buf_bytes, "%.*s***%s", (int)(user - text), text, at);
	else
		snprintf(buf, buf_bytes, "%s", text);
}

struct complaint {
	const char *text; /* without secrets */
	struct err *why;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct complaint *c, const char *fmt,
							...)
{
	struct err what;
	va_list args;

	va_start(args, fmt);
	err_set_args(&what, -EINVAL, fmt, args);
	va_end(args);
	return err_set(c->why, -EINVAL, "push: '%s': %s", c->text, what.text);
}

/* True without anything that needs quoting in a URL, a header or a log line. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f || strchr("\"\\<>`{}|^", *s))
			return false;
	return true;
}

static int parse_port(const char *digits, size_t n, const struct complaint *c, uint16_t *ret)
{
	unsigned int port = 0;

	if (!n)
		return refuse(c, "no port after the colon");
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)digits[i]))
			return refuse(c, "the port '%.*s' is not a number", (int)n, digits);
		port = port * 10 + (digits[i] - '0');
		if (port > UINT16_MAX)
			break;
	}
	if (!port || port > UINT16_MAX)
		return refuse(c, "the port %.*s is not between 1 and 65535", (int)n, digits);
	*ret = port;
	return 0;
}

static bool is_host_name(const char *host)
{
	size_t n = strlen(host);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr("-._", host[i]))
			return false;
	return n > 0 && host[0] != '-' && host[0] != '.';
}

/* Parse HOST:PORT, n bytes. */
static int parse_authority(const char *s, size_t n, const struct complaint *c,
			   struct push_target *t)
{
	const char *colon, *host = s;
	struct in6_addr addr;
	size_t host_bytes;

	if (n && s[0] == '[') {
		const char *bracket = memchr(s, ']', n);

		if (!bracket)
			return refuse(c, "the IPv6 address has no closing bracket");
		host = s + 1;
		host_bytes = bracket - host;
		colon = bracket + 1 < s + n && bracket[1] == ':' ? bracket + 1 : NULL;
		if (!colon && bracket + 1 < s + n)
			return refuse(c, "':PORT' must follow the IPv6 address");
	} else {
		colon = memchr(s, ':', n);
		host_bytes = colon ? (size_t)(colon - s) : n;
		if (colon && memchr(colon + 1, ':', s + n - colon - 1))
			return refuse(c, "write an IPv6 address in brackets: [ADDRESS]:PORT");
	}
	if (!host_bytes)
		return refuse(c, "no host");
	if (host_bytes >= sizeof(t->host))
		return refuse(c, "the host's name is too long");
	memcpy(t->host, host, host_bytes);
	t->host[host_bytes] = 0;
	if (host == s ? !is_host_name(t->host) : inet_pton(AF_INET6, t->host, &addr) != 1)
		return refuse(c, "'%s' is neither a host name nor an address", t->host);
	if (!colon)
		return refuse(c, "no port, as in %s:%s", t->host,
			      t->kind == PUSH_PARCA ? "7070" : "4040");
	return parse_port(colon + 1, s + n - colon - 1, c, &t->port);
}

int push_target_parse(const char *text, struct push_target *ret, struct err *why)
{
	char shown[201];
	const struct complaint c = { shown, why };
	struct push_target t = { 0 };
	const char *rest = NULL, *slash;
	size_t prefix_bytes;
	int err;

	push_target_redact(text, shown, sizeof(shown));
	for (size_t i = 0; i < ARRAY_CNT(schemes) && !rest; i++)
		if (!strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix))) {
			rest = text + strlen(schemes[i].prefix);
			t.kind = schemes[i].kind;
			t.is_tls = schemes[i].is_tls;
		}
	if (!rest)
		return refuse(&c, "does not begin with parca+http://, parca+https://, "
				  "pyroscope+http:// or pyroscope+https://");
	if (strlen(text) >= sizeof(t.name))
		return refuse(&c, "too long");
	if (strchr(rest, '@')) /* anywhere: a password may have a '/' */
		return refuse(&c, "no user or password in the address: give them in a file");
	if (!is_plain(rest))
		return refuse(&c, "it must not have spaces, quotes or control characters");
	if (strpbrk(rest, "?#"))
		return refuse(&c, "it must not have '?' or '#'");
	slash = strchrnul(rest, '/');
	err = parse_authority(rest, slash - rest, &c, &t);
	if (err)
		return err;
	prefix_bytes = strlen(slash);
	while (prefix_bytes && slash[prefix_bytes - 1] == '/')
		prefix_bytes--;
	if (prefix_bytes && t.kind == PUSH_PARCA)
		return refuse(&c, "nothing may follow the port: gRPC takes no path");
	memcpy(t.name, text, strlen(text));
	snprintf(t.url, sizeof(t.url), "%s://%.*s%.*s%s", t.is_tls ? "https" : "http",
		 (int)(slash - rest), rest, (int)prefix_bytes, slash, paths[t.kind]);
	*ret = t;
	return 0;
}

void push_target_file_name(const struct push_target *t, char ret[PUSH_TARGET_FILE_BYTES])
{
	snprintf(ret, PUSH_TARGET_FILE_BYTES, "%s-%.64s-%u-%08x",
		 t->kind == PUSH_PARCA ? "parca" : "pyroscope", t->host, t->port,
		 (unsigned int)hash_bytes(t->url, strlen(t->url)));
	for (char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			*c = '_';
}
