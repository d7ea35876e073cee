/* SPDX-License-Identifier: MIT */
/* listen.c - see http.h. */
#include "http/http.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/folder.h"

#define BACKLOG 64

int listen_parse(const char *text, char host[static LISTEN_HOST_BYTES], const char **ret_port)
{
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
	char *digits_end;
	unsigned long port;

	if (!colon)
		return -EINVAL;
	if (*text == '[') {
		begin++;
		end--;
		if (end <= begin || *end != ']')
			return -EINVAL;
	} else if (memchr(text, ':', (size_t)(colon - text))) {
		return -EINVAL; /* V6 without brackets: the port's beginning is unclear */
	}
	if (end <= begin || end - begin >= LISTEN_HOST_BYTES)
		return -EINVAL;
	if (colon[1] < '0' || colon[1] > '9')
		return -EINVAL;
	port = strtoul(colon + 1, &digits_end, 10);
	if (*digits_end || port > 65535)
		return -EINVAL;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	*ret_port = colon + 1;
	return 0;
}

int listen_split_host(const char *header, char host[static LISTEN_HOST_BYTES])
{
	bool is_bracketed = *header == '[';
	const char *begin = header + is_bracketed;
	size_t len = strcspn(begin, is_bracketed ? "]" : ":");
	const char *rest = begin + len;
	unsigned char address[sizeof(struct in6_addr)];

	if (is_bracketed && *rest++ != ']')
		return -EINVAL;
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return -EINVAL;
	if (!len || len >= LISTEN_HOST_BYTES)
		return -EINVAL;
	memcpy(host, begin, len);
	host[len] = '\0';
	return is_bracketed && inet_pton(AF_INET6, host, address) != 1 ? -EINVAL : 0;
}

bool listen_is_own_name(const char *header, const char *own)
{
	static const char localhost[] = "localhost";
	unsigned char address[sizeof(struct in6_addr)];
	char host[LISTEN_HOST_BYTES];
	size_t len;

	if (listen_split_host(header, host))
		return false;
	len = strlen(host);
	if (len && host[len - 1] == '.')
		host[--len] = '\0';
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return true;
	if (!strcasecmp(host, localhost) || (*own && !strcasecmp(host, own)))
		return true;
	return len > sizeof(localhost) && host[len - sizeof(localhost)] == '.' &&
	       !strcasecmp(host + len - sizeof(localhost) + 1, localhost);
}

static bool is_loopback(const struct sockaddr *sa)
{
	const struct sockaddr_in *v4 = (const void *)sa;
	const struct sockaddr_in6 *v6 = (const void *)sa;

	if (sa->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return sa->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Ask the kernel for the address: it has the port even if 0 was requested. */
static int name_inet(struct listen_socket *s)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	char host[NI_MAXHOST], port[NI_MAXSERV];
	bool is_v6;

	if (getsockname(s->fd, (struct sockaddr *)&ss, &len))
		return -errno;
	if (getnameinfo((struct sockaddr *)&ss, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	is_v6 = ss.ss_family == AF_INET6;
	if (snprintf(s->address, sizeof(s->address), "http://%s%s%s:%s/", is_v6 ? "[" : "", host,
		     is_v6 ? "]" : "", port) >= (int)sizeof(s->address))
		return -ENAMETOOLONG;
	return 0;
}

static int open_inet(const struct addrinfo *ai, struct listen_socket *s)
{
	int one = 1, err;

	s->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	/* A port whose last connections are still in TIME_WAIT may be used; one in use may not. */
	if (setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(s->fd, ai->ai_addr, ai->ai_addrlen) || listen(s->fd, BACKLOG))
		err = -errno;
	else
		err = name_inet(s);
	if (err) {
		close(s->fd);
		s->fd = -1;
	}
	return err;
}

/* The caller frees *ret. */
static int resolve(const char *text, bool must_be_local, struct addrinfo **ret, struct err *why)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	char host[LISTEN_HOST_BYTES];
	struct addrinfo *ai = NULL;
	const char *port;
	int rc, err = listen_parse(text, host, &port);

	if (err)
		return err_set(why, err, "bad address '%s': expected ADDR:PORT or unix:PATH", text);
	rc = getaddrinfo(host, port, &hints, &ai);
	if (rc)
		return err_set(why, -EINVAL, "cannot resolve '%s': %s", host, gai_strerror(rc));
	if (must_be_local && !is_loopback(ai->ai_addr)) {
		freeaddrinfo(ai);
		return err_set(why, -EPERM,
			       "other machines can reach '%s': this needs --token-file FILE", text);
	}
	*ret = ai;
	return 0;
}

static int open_host(const char *text, bool must_be_local, struct listen_socket *s, struct err *why)
{
	struct addrinfo *ai = NULL;
	int err = resolve(text, must_be_local, &ai, why);

	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): with 0 it was set */
	s->is_local = is_loopback(ai->ai_addr);
	err = open_inet(ai, s);
	if (err == -EADDRINUSE)
		err_set(why, err,
			"%s is in use by another program; choose another port with --listen", text);
	else if (err)
		err_set_os(why, err, "cannot listen on %s", text);
	freeaddrinfo(ai);
	return err;
}

int listen_check(const char *text, bool must_be_local, struct err *why)
{
	struct addrinfo *ai = NULL;
	int err;

	if (!strncmp(text, "unix:", 5))
		return 0;
	err = resolve(text, must_be_local, &ai, why);
	if (!err)
		freeaddrinfo(ai);
	return err;
}

/* Was it left by a program that was killed? */
static bool is_stale(const struct sockaddr_un *sun)
{
	struct stat st;
	int fd, err = 0;

	if (lstat(sun->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)))
		err = errno;
	close(fd);
	return err == ECONNREFUSED;
}

static int bind_unix(int fd, const struct sockaddr_un *sun)
{
	mode_t old_mask = umask(0177); /* at no moment may others connect */
	int err = bind(fd, (const struct sockaddr *)sun, sizeof(*sun)) ? -errno : 0;

	umask(old_mask);
	return err;
}

/* Anybody who can change the folder of a socket can put his own there. */
static int check_folder(const char *path, struct err *why)
{
	char folder[PATH_MAX];
	struct err folder_why = { 0 };
	const char *slash = strrchr(path, '/');
	int fd, err;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1,
		 slash ? path : ".");
	err = folder_open(folder, FOLDER_SHARED, &fd, &folder_why);
	if (!err)
		close(fd);
	else if (folder_why.text[0])
		err_set(why, err, "cannot listen on unix:%s: %s; choose a socket in another folder",
			path, folder_why.text);
	else
		err_set_os(why, err, "cannot listen on unix:%s", path);
	return err;
}

static int open_unix(const char *path, struct listen_socket *s, struct err *why)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int err;

	if (!*path || strlen(path) >= sizeof(sun.sun_path))
		return err_set(why, -EINVAL, "bad socket path '%s': expected 1 to %zu bytes", path,
			       sizeof(sun.sun_path) - 1);
	err = check_folder(path, why);
	if (err)
		return err;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	err = bind_unix(s->fd, &sun);
	if (err == -EADDRINUSE && is_stale(&sun) && !unlink(path))
		err = bind_unix(s->fd, &sun);
	if (!err && listen(s->fd, BACKLOG))
		err = -errno;
	if (err) {
		err_set_os(why, err, "cannot listen on unix:%s", path);
		close(s->fd);
		s->fd = -1;
		return err;
	}
	snprintf(s->address, sizeof(s->address), "unix:%s", path);
	s->unix_path = s->address + strlen("unix:");
	s->is_local = true;
	return 0;
}

int listen_open(const char *text, bool must_be_local, struct listen_socket *ret, struct err *why)
{
	*ret = (struct listen_socket){ .fd = -1 };
	if (!strncmp(text, "unix:", 5))
		return open_unix(text + 5, ret, why);
	return open_host(text, must_be_local, ret, why);
}

void listen_close(struct listen_socket *s)
{
	if (s->fd < 0)
		return;
	close(s->fd);
	s->fd = -1;
	if (s->unix_path)
		unlink(s->unix_path);
}
