/* SPDX-License-Identifier: MIT */
/*
 * debuginfod.c - see debug_files.h.
 *
 * GET SERVER/buildid/BUILDID/debuginfo or /executable, one server after the other. The answer is written to a
 * file first, bounded, and counts only when it has that build id: a server, or an impostor, can send a wrong
 * file, but not one of another build. The file is read like all untrusted files (symbol.h).
 *
 * Unlike debuginfod's own client it does not remember that no server had a file, and does not clean the cache.
 */

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/curl_setup.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/fd.h"
#include "symbol/debug_files.h"

#define FILE_BYTES_MAX (4LL << 30)
#define CONNECT_SECONDS 10L
/* As in debuginfod's client: a server that sends nothing for so long is given up. */
#define IDLE_SECONDS 90L
#define REDIRECTS_MAX 5L
#define TEMP_PREFIX ".heaptap-"

struct debuginfod {
	CURL *easy;
	char *urls; /* separated by blanks */
	char cache[PATH_MAX - 256]; /* "": none */
	struct err why;
};

/* A file that is being downloaded. */
struct download {
	int fd;
	int64_t bytes;
	int err; /* of writing */
};

static const char *const kind_names[] = { "debuginfo", "executable" }; /* enum debuginfod_kind */

static void find_cache(struct debuginfod *d)
{
	const char *path = getenv("DEBUGINFOD_CACHE_PATH"), *base = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int len = 0;

	if (path && *path)
		len = snprintf(d->cache, sizeof(d->cache), "%s", path);
	else if (base && *base)
		len = snprintf(d->cache, sizeof(d->cache), "%s/debuginfod_client", base);
	else if (home && *home)
		len = snprintf(d->cache, sizeof(d->cache), "%s/.cache/debuginfod_client", home);
	if (len >= (int)sizeof(d->cache))
		d->cache[0] = '\0';
}

int debuginfod_open(struct debuginfod **ret)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *d;

	if (!urls || !urls[strspn(urls, " \t\n")])
		return -ENOENT;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	d = calloc(1, sizeof(*d));
	if (!d) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	d->urls = strdup(urls);
	d->easy = curl_easy_init();
	if (!d->urls || !d->easy) {
		debuginfod_close(d);
		return -ENOMEM;
	}
	find_cache(d);
	*ret = d;
	return 0;
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	curl_easy_cleanup(d->easy);
	free(d->urls);
	free(d);
	curl_global_cleanup();
}

const char *debuginfod_why(const struct debuginfod *d)
{
	return d->why.text;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct download *down = ctx;
	size_t bytes = size * n;

	down->bytes += (int64_t)bytes;
	if (down->bytes > FILE_BYTES_MAX)
		down->err = -EFBIG;
	else
		down->err = write_all(down->fd, data, bytes);
	return down->err ? 0 : bytes;
}

static CURLcode set_up(struct debuginfod *d, const char *url, struct download *down,
		       char error[static CURL_ERROR_SIZE])
{
	CURL *e = d->easy;
	CURLcode rc;

	curl_easy_reset(e);
	rc = curl_setup(e, false, NULL, error);
	CURL_SET(rc, e, CURLOPT_URL, url);
	CURL_SET(rc, e, CURLOPT_FOLLOWLOCATION, 1L);
	CURL_SET(rc, e, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
	CURL_SET(rc, e, CURLOPT_FAILONERROR, 1L);
	CURL_SET(rc, e, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	CURL_SET(rc, e, CURLOPT_LOW_SPEED_LIMIT, 1L);
	CURL_SET(rc, e, CURLOPT_LOW_SPEED_TIME, IDLE_SECONDS);
	CURL_SET(rc, e, CURLOPT_WRITEFUNCTION, on_data);
	CURL_SET(rc, e, CURLOPT_WRITEDATA, down);
	return rc;
}

/* 0, -ENOENT: the server does not have it; else d->why. */
static int download(struct debuginfod *d, const char *server, const char *build_id_hex,
		    enum debuginfod_kind kind, int fd, int read_fd)
{
	struct download down = { .fd = fd };
	char url[2048], error[CURL_ERROR_SIZE] = "";
	size_t len = strlen(server);
	long status = 0;
	CURLcode rc;

	if (snprintf(url, sizeof(url), "%s%sbuildid/%s/%s", server,
		     len && server[len - 1] == '/' ? "" : "/", build_id_hex,
		     kind_names[kind]) >= (int)sizeof(url))
		return -ENAMETOOLONG;
	rc = set_up(d, url, &down, error);
	if (rc == CURLE_OK)
		rc = curl_easy_perform(d->easy);
	if (rc == CURLE_OK)
		return build_id_check(read_fd, build_id_hex);
	curl_easy_getinfo(d->easy, CURLINFO_RESPONSE_CODE, &status);
	if (rc == CURLE_HTTP_RETURNED_ERROR && (status == 404 || status == 410))
		return -ENOENT;
	return err_set(&d->why, -EIO, "%.200s: %s", server,
		       down.err ? strerror(-down.err) :
		       error[0] ? error :
				  curl_easy_strerror(rc));
}

/* Ask all servers, write to fd; output of a failed server is cut off. read_fd: the same file, to read from. */
static int ask_all(struct debuginfod *d, const char *build_id_hex, enum debuginfod_kind kind,
		   int fd, int read_fd)
{
	char *urls = strdup(d->urls), *rest = urls, *server;
	int err = -ENOENT;

	if (!urls)
		return -ENOMEM;
	while (err && (server = strtok_r(rest, " \t\n", &rest))) {
		int this_err;

		if (strncmp(server, "http://", 7) && strncmp(server, "https://", 8))
			continue; /* "ima:..." and "file://..." */
		if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET) < 0) {
			err = -errno;
			break;
		}
		this_err = download(d, server, build_id_hex, kind, fd, read_fd);
		if (this_err != -ENOENT)
			err = this_err;
	}
	free(urls);
	return err;
}

/* The folder of a build id in the cache, or a negative errno. */
static int open_cache(const struct debuginfod *d, const char *build_id_hex)
{
	char path[PATH_MAX];
	int fd = -1, err;

	if (!d->cache[0])
		return -ENOENT;
	err = folder_open(d->cache, FOLDER_OURS, &fd, NULL);
	if (err)
		return err;
	close(fd);
	snprintf(path, sizeof(path), "%s/%s", d->cache, build_id_hex);
	err = folder_open(path, FOLDER_OURS, &fd, NULL);
	return err ? err : fd;
}

static int fetch_to_cache(struct debuginfod *d, int folder_fd, const char *build_id_hex,
			  enum debuginfod_kind kind)
{
	struct new_file file;
	int fd = openat(folder_fd, kind_names[kind], O_RDONLY | O_CLOEXEC | O_NOFOLLOW), err;

	if (fd >= 0 && !build_id_check(fd, build_id_hex))
		return fd;
	if (fd >= 0)
		close(fd);
	err = new_file_open(folder_fd, TEMP_PREFIX, &file);
	if (err)
		return err;
	fd = openat(folder_fd, file.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	err = fd < 0 ? -errno : ask_all(d, build_id_hex, kind, file.fd, fd);
	if (!err) /* if it cannot be kept, it can still be used */
		(void)new_file_commit(&file, kind_names[kind], true);
	new_file_drop(&file);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* Without a cache: into an unnamed file, or into memory where there is no folder for one. */
static int fetch_unnamed(struct debuginfod *d, const char *build_id_hex, enum debuginfod_kind kind)
{
	const char *tmp = getenv("TMPDIR");
	int fd = open(tmp && *tmp ? tmp : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), err;

	if (fd < 0)
		fd = memfd_create("debuginfod", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = ask_all(d, build_id_hex, kind, fd, fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

int debuginfod_fetch(struct debuginfod *d, const char *build_id_hex, enum debuginfod_kind kind)
{
	int folder_fd, fd;

	d->why.text[0] = '\0';
	/* It becomes a part of paths, and comes from a profile, which is not trusted. */
	if (!build_id_hex[0] || build_id_hex[strspn(build_id_hex, "0123456789abcdef")] ||
	    strlen(build_id_hex) > 128)
		return -ENOENT;
	folder_fd = open_cache(d, build_id_hex);
	if (folder_fd < 0)
		return fetch_unnamed(d, build_id_hex, kind);
	fd = fetch_to_cache(d, folder_fd, build_id_hex, kind);
	close(folder_fd);
	return fd;
}
