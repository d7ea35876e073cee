/* SPDX-License-Identifier: MIT */
/*
 * cmd/symbolize.c - `heaptap symbolize`: adds names and lines to a profile, if asked for with files of debuginfod servers.
 *
 * The recorded host has no debug information, and often not even symbols; the place where builds are made has both.
 * A build id identifies the file.
 */
#include <curl/curl.h>
#include <sys/mman.h>

#include "base/curl_setup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/sandbox.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "symbol/debug_files.h"
#include "symbol/symbol.h"

/*
 * Fetches files by build id from servers that speak debuginfod's protocol. It waits for the network: only for commands
 * that read profiles, when the user asked for it; never for a recording. Each request tells the server which builds the
 * user looks at.
 *
 * GET SERVER/buildid/BUILDID/debuginfo or /executable, one server after the other. The answer is written to a
 * file first, bounded, and counts only when it has that build id: a server, or an impostor, can send a wrong
 * file, but not one of another build. The file is read like all untrusted files (symbol.h).
 *
 * Unlike debuginfod's own client it does not remember that no server had a file, and does not clean the cache.
 */

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

enum debuginfod_kind { DEBUGINFOD_DEBUGINFO, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_KIND_CNT };

static const char *const kind_names[] = { "debuginfo", "executable" };

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

static void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	curl_easy_cleanup(d->easy);
	free(d->urls);
	free(d);
	curl_global_cleanup();
}

/* Uses the servers in DEBUGINFOD_URLS. -ENOENT: it names none. */
static int debuginfod_open(struct debuginfod **ret)
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

/* The failure of the last server that did not answer: a sentence. */
static const char *debuginfod_why(const struct debuginfod *d)
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

/*
 * Return an fd of the file, whose build id is checked. It is kept in the cache of debuginfod's other clients
 * (DEBUGINFOD_CACHE_PATH, else debuginfod_client in XDG_CACHE_HOME or ~/.cache) if that is the user's own.
 * -ENOENT: no server has it. Others: debuginfod_why().
 */
static int debuginfod_fetch(struct debuginfod *d, const char *build_id_hex,
			    enum debuginfod_kind kind)
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

static const char usage[] =
	"usage: heaptap symbolize [OPTIONS] FILE\n\n"
	"Add names, lines and inlined functions to a profile, from files with the same build "
	"ids: programs,\n"
	"libraries, and separate debug information.\n"
	"FILE is replaced, unless --output names another file. FILE may be - for standard "
	"input.\n\n";

static const char more[] = "\n"
			   "examples:\n"
			   "  ssh HOST heaptap record -o - -d 30s -p PID >x.pb.gz\n"
			   "  heaptap symbolize --debug-dir build/ x.pb.gz\n"
			   "  heaptap symbolize --debuginfod -o named.pb.gz x.pb.gz\n";

struct symbolize_options {
	struct texts debug_dirs;
	char *output;
	bool asks_debuginfod, is_quiet;
};

#define AT(member) offsetof(struct symbolize_options, member)

static const struct option_row rows[] = {
	OPTION(TEXTS, 0, "debug-dir", "DIR", AT(debug_dirs),
	       "look here first: DIR/.build-id/ab/cdef.debug, the files' own paths below DIR, and their "
	       "names in DIR; may be repeated"),
	OPTION(FLAG, 0, "debuginfod", NULL, AT(asks_debuginfod),
	       "ask the servers of $DEBUGINFOD_URLS for files that are not found here"),
	OPTION(TEXT, 'o', "output", "FILE", AT(output),
	       "write to FILE (replaced if it exists) instead of the profile that was read; - "
	       "is standard output"),
	OPTION(FLAG, 'q', "quiet", NULL, AT(is_quiet), "do not print a summary"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = sizeof(rows) / sizeof(*rows) };

struct job {
	const struct symbolize_options *o;
	struct debuginfod *servers; /* NULL: no server is asked */
	size_t wanted_cnt, named_cnt, missing_cnt;
};

static int fetch(void *ctx, const char *build_id_hex, unsigned nth)
{
	struct job *j = ctx;
	int fd;

	if (nth >= DEBUGINFOD_KIND_CNT)
		return -ERANGE;
	fd = debuginfod_fetch(j->servers, build_id_hex, (enum debuginfod_kind)nth);
	if (fd < 0 && debuginfod_why(j->servers)[0])
		log_warn("symbolize: build id %s: %s", build_id_hex, debuginfod_why(j->servers));
	return fd;
}

static void on_file(void *ctx, const struct profile_symbol_file *file)
{
	struct job *j = ctx;
	char path[256];

	j->wanted_cnt += file->wanted_cnt;
	j->named_cnt += file->named_cnt;
	j->missing_cnt += !file->is_found;
	snprintf(path, sizeof(path), "%s", file->path);
	make_printable(path);
	if (!file->is_found)
		log_info("symbolize: not found: %s, build id %s", path,
			 file->build_id_hex[0] ? file->build_id_hex : "unknown");
	else
		log_info("symbolize: %zu of %zu addresses: %s", file->named_cnt, file->wanted_cnt,
			 path);
}

/* path "-": stdout_fd, which is taken over. */
static int write_profile(const struct profile *p, const char *path, int stdout_fd)
{
	struct out_file *file = NULL;
	struct err why = { 0 };
	int err;

	if (stdout_fd >= 0)
		err = out_file_open_stdout(stdout_fd, &file);
	else
		err = out_file_open(path, true, " with -o FILE", &file, &why);
	if (!err)
		err = pprof_write(p, out_file_fd(file));
	if (!err)
		err = out_file_commit(file);
	if (err && why.text[0])
		log_error("symbolize: %s", why.text);
	else if (err)
		log_error("symbolize: cannot write '%s': %s", path, strerror(-err));
	out_file_free(file);
	return err;
}

static int name_all(struct job *j, struct profile *p)
{
	const struct symbol_options symbols = { .lines = true, .demangle = true };
	const struct profile_symbol_places places = {
		.dirs = (const char *const *)j->o->debug_dirs.data,
		.dir_cnt = j->o->debug_dirs.cnt,
		.fetch = j->servers ? fetch : NULL,
		.on_file = on_file,
		.ctx = j,
	};
	int err;

	if (!sandbox_is_whole())
		log_warn("symbolize: " SANDBOX_NOT_WHOLE);
	err = profile_symbolize_elsewhere(p, &symbols, &places);

	if (err)
		log_error("symbolize: %s", strerror(-err));
	else if (!j->wanted_cnt)
		log_info("symbolize: nothing is missing");
	else
		log_info("symbolize: %zu of %zu addresses have better names or lines now; %zu "
			 "files not found",
			 j->named_cnt, j->wanted_cnt, j->missing_cnt);
	return err;
}

static int open_servers(const struct symbolize_options *o, struct debuginfod **ret)
{
	int err = o->asks_debuginfod ? debuginfod_open(ret) : 0;

	if (err == -ENOENT)
		log_error("symbolize: --debuginfod needs DEBUGINFOD_URLS; for all distributions: "
			  "DEBUGINFOD_URLS=https://debuginfod.elfutils.org/");
	else if (err)
		log_error("symbolize: %s", strerror(-err));
	return err;
}

/* Check standard output before anything is done. */
static int take_stdout(const char *output, int *ret_fd)
{
	int err = out_file_is_stdout(output) ? out_file_take_stdout(ret_fd) : 0;

	if (err == -ENOTTY)
		log_error("symbolize: the profile is not text, and standard output is a terminal: "
			  "redirect it, or give a file with -o FILE");
	else if (err)
		log_error("symbolize: cannot write to standard output: %s", strerror(-err));
	return err;
}

static int symbolize_file(const struct symbolize_options *o, const char *path)
{
	const char *output = o->output ? o->output : path;
	struct job j = { .o = o };
	struct profile *p = NULL;
	int stdout_fd = -1, err;

	err = open_servers(o, &j.servers);
	if (!err)
		err = take_stdout(output, &stdout_fd);
	if (!err)
		err = profile_in_read("symbolize", path, NULL, &p);
	if (!err)
		err = name_all(&j, p);
	if (!err) {
		err = write_profile(p, output, stdout_fd);
		stdout_fd = -1;
	}
	if (stdout_fd >= 0)
		close(stdout_fd);
	profile_free(p);
	debuginfod_close(j.servers);
	return err;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct symbolize_options o = { 0 };
	int status = 2;

	if (command_settings(&command_symbolize, args, &o))
		goto out;
	log_set_level(o.is_quiet ? LOG_WARN : LOG_INFO);
	if (args->first == (size_t)argc) {
		log_error("symbolize: give a FILE");
		goto out;
	}
	if (args->first + 1 < (size_t)argc) {
		log_error("symbolize: unexpected argument '%s': one FILE at a time",
			  argv[args->first + 1]);
		goto out;
	}
	status = symbolize_file(&o, argv[args->first]) ? 1 : 0;
out:
	option_release(&table, &o);
	return status;
}

const struct command command_symbolize = {
	.name = "symbolize",
	.summary = "add names and lines to a profile that was recorded elsewhere",
	.example = "heaptap symbolize --debug-dir DIR FILE",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run,
};
