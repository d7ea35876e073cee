/* SPDX-License-Identifier: MIT */
/*
 * pushes.c - see pushes.h.
 *
 * The file between the processes is a sequence of heads and bodies. The child is of the same program, but may be
 * killed at any moment: then the last body is incomplete.
 */
#include "serve/pushes.h"

#include <poll.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/printable.h"
#include "base/sandbox.h"
#include "elf/debug_only.h"
#include "elf/elf_file.h"
#include "http/endpoints.h"
#include "http/view.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "profile/profile.h"
#include "profile/profile_copy.h"
#include "serve/push_message.h"
#include "serve/push_queue.h"
#include "record/make.h"
#include "symbol/debug_files.h"
#include "track/file.h"
#include "track/files.h"
#include "track/tracker.h"

static const struct track_file *find_file(const struct track_files *files, const char *build_id)
{
	for (size_t i = 0; files && i < track_files_cnt(files); i++) {
		const struct track_file *file = track_files_at(files, i);

		if (file && file->fd >= 0 && !file->is_vdso &&
		    !strcmp(file->build_id_hex, build_id))
			return file;
	}
	return NULL;
}

/* For the names of all processes, before the child is ended. */
#define NAMES_NS (100 * NS_PER_S)

struct head {
	uint32_t targets_id; /* the set of targets for which it was made */
	uint32_t target;
	uint64_t bytes;
};

/* The state of each target. */
struct lane {
	struct push_sender *sender;
	struct debuginfo_upload *upload; /* NULL: the target gets none */
};

struct pushes {
	struct reader *reader;
	struct pushes_options opts;
	struct loop *loop;
	struct lane *lanes; /* one for each of opts.targets */
	uint32_t targets_id; /* changes with the set of targets */
	const struct track_files *files;
	char node[256];
	struct push_clock clock; /* shared: one profile of a process for all targets */
	bool is_due;
};

static void set_identity(const struct pushes_options *o, struct push_http_options *ret)
{
	ret->token_file = o->token_file;
	ret->basic_file = o->basic_file;
	ret->tenant = o->tenant;
	ret->ca_file = o->ca_file;
}

static int open_sender(const struct pushes_options *o, size_t i, struct push_sender **ret)
{
	char name[PUSH_TARGET_FILE_BYTES], *dir = NULL;
	struct push_queue_options opts;
	int err;

	opts = push_queue_defaults;
	opts.http.target = o->targets[i];
	set_identity(o, &opts.http);
	if (o->spool_dir) {
		push_target_file_name(&opts.http.target, name);
		if (asprintf(&dir, "%s/%s", o->spool_dir, name) < 0)
			return -ENOMEM;
		opts.spool.dir = dir;
	}
	err = push_sender_open(&opts, ret);
	free(dir);
	return err;
}

/* Debug jobs: see pushes.h. */

#define DATA_BYTES (256ULL << 20) /* for section tables; the contents are read a piece at a time */
#define MAP_BYTES (16ULL << 30) /* two files are mapped as a whole */
#define PIECE_BYTES 65536
#define PIPE_BYTES (1 << 20)
/* The longest request, and the wait for it. */
#define WALL_S (20 * 60)
/* The reader counts jobs by user: uploads are a user of their own. */
#define UPLOADS (UINT32_MAX - 1)

struct debug_args {
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	char root[64];
};

/* The job's answer: this, then the bytes. */
struct debug_head {
	int32_t err;
	uint32_t reserved;
	uint64_t bytes, hash;
};

/*
 * In the job.
 */

static bool has_dwarf(const struct elf_file *ef)
{
	return elf_file_find(ef, ".debug_info") || elf_file_find(ef, ".zdebug_info");
}

static int reduce(int fd, bool needs_dwarf, struct debug_only **ret)
{
	struct elf_file *ef = NULL;
	int err = fd < 0 ? -ENODATA : elf_file_open_fd(fd, &ef);

	if (err)
		return err;
	err = needs_dwarf && !has_dwarf(ef) ? -ENODATA : debug_only_new(ef, ret);
	elf_file_close(ef);
	return err;
}

/* Reduce the best of the two, of which it returns the descriptor. */
static int reduce_best(int fd, int separate_fd, struct debug_only **ret, int *ret_fd)
{
	int err = reduce(fd, true, ret);

	*ret_fd = fd;
	if (err && err != -ENOMEM) {
		*ret_fd = separate_fd;
		err = reduce(separate_fd, false, ret);
	}
	if (err && err != -ENOMEM) {
		*ret_fd = fd;
		err = reduce(fd, false, ret);
	}
	return err;
}

static int send_bytes(const struct debug_only *d, int fd, int out_fd)
{
	static uint8_t piece[PIECE_BYTES];
	uint64_t at = 0;
	ssize_t n;

	while ((n = debug_only_read(d, fd, at, piece, sizeof(piece))) > 0) {
		int err = write_all(out_fd, piece, (size_t)n);

		if (err)
			return err;
		at += (uint64_t)n;
	}
	return (int)n;
}

int debug_job_run(int fd, const void *raw, size_t raw_bytes, int out_fd)
{
	const struct sandbox_limits limits = { .data_bytes = DATA_BYTES, .map_bytes = MAP_BYTES };
	struct debug_head head = { 0 };
	struct debug_only *d = NULL;
	struct debug_args args;
	char path[PATH_MAX];
	int separate_fd, best_fd = -1;

	if (raw_bytes != sizeof(args))
		return 1;
	memcpy(&args, raw, sizeof(args));
	args.build_id_hex[sizeof(args.build_id_hex) - 1] = args.root[sizeof(args.root) - 1] = '\0';
	separate_fd = debug_files_open_id(args.build_id_hex, args.root, path);
	if (sandbox_seal(getppid(), &limits))
		return 1;
	head.err = reduce_best(fd, separate_fd, &d, &best_fd);
	if (!head.err) {
		head.bytes = debug_only_bytes(d);
		head.hash = debug_only_hash(d);
	}
	if (write_all(out_fd, &head, sizeof(head)) || head.err)
		return 1;
	return send_bytes(d, best_fd, out_fd) ? 1 : 0; /* the process ends, and frees the rest */
}

/*
 * In main.
 */

/* A pipe is written in one piece if it has room: so the head is there, or not. */
static int read_head(int fd, struct debug_head *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, READER_PROMPT_MS) <= 0)
		return -EAGAIN;
	n = read(fd, ret, sizeof(*ret));
	if (n != sizeof(*ret))
		return n < 0 ? -errno : -ENODATA; /* it could not be read */
	if (ret->err && ret->err != -ENOMEM)
		return -ENODATA;
	return ret->err;
}

int debug_job_start(struct reader *reader, const struct track_file *file,
		    struct debuginfo_file *ret)
{
	struct debug_args args = { 0 };
	struct debug_head head;
	int fd, err;

	snprintf(args.build_id_hex, sizeof(args.build_id_hex), "%s", file->build_id_hex);
	snprintf(args.root, sizeof(args.root), "%s", file->root);
	err = reader_run_job(reader, UPLOADS, DEBUG_JOB, file->fd, &args, sizeof(args), WALL_S,
			     &fd);
	if (err)
		return err == -EBUSY || err == -ETIMEDOUT ? -EAGAIN : err;
	(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	err = read_head(fd, &head);
	if (err) {
		close(fd);
		return err;
	}
	*ret = (struct debuginfo_file){ .fd = fd, .bytes = head.bytes, .hash = head.hash };
	return 0;
}

static int open_debug_file(void *ctx, const char *build_id, struct debuginfo_file *ret)
{
	const struct pushes *p = ctx;
	const struct track_file *file = find_file(p->files, build_id);

	return file ? debug_job_start(p->reader, file, ret) : -ENOENT;
}

static int open_upload(struct pushes *p, const struct pushes_options *o, size_t i,
		       struct debuginfo_upload **ret)
{
	struct debuginfo_upload_options opts;

	if (!o->sends_debuginfo || o->targets[i].kind != PUSH_PARCA)
		return 0;
	opts = debuginfo_upload_defaults;
	opts.http.target = o->targets[i];
	set_identity(o, &opts.http);
	opts.open_file = open_debug_file;
	opts.ctx = p;
	opts.file_bytes_max = o->debuginfo_bytes_max;
	return debuginfo_upload_open(&opts, ret);
}

static void close_lane(struct lane *lane)
{
	push_sender_close(lane->sender);
	debuginfo_upload_close(lane->upload);
}

static int open_lane(struct pushes *p, const struct pushes_options *o, size_t i, struct lane *ret)
{
	struct lane lane = { 0 };
	int err = open_sender(o, i, &lane.sender);

	if (!err)
		err = open_upload(p, o, i, &lane.upload);
	if (err) {
		log_error("serve: cannot push to '%s': %s", o->targets[i].name, strerror(-err));
		close_lane(&lane);
		return err;
	}
	*ret = lane;
	return 0;
}

static int check_spool_dir(const char *dir)
{
	struct err why = { 0 };
	int fd, err = folder_open(dir, FOLDER_OURS, &fd, &why);

	if (!err)
		close(fd);
	else if (why.text[0])
		log_error("serve: cannot keep pushes in '%s': %s; it must be a folder that only "
			  "its owner can write to (chmod go-w, chown)",
			  dir, why.text);
	else
		log_error("serve: cannot create or open the folder '%s': %s", dir, strerror(-err));
	return err;
}

void pushes_close(struct pushes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->opts.target_cnt; i++)
		close_lane(&p->lanes[i]);
	free(p->lanes);
	free(p);
}

/* Find the lane of a target, if it exists. */
static const struct lane *find_lane(const struct pushes *p, const struct push_target *t)
{
	for (size_t i = 0; i < p->opts.target_cnt; i++)
		if (!strcmp(p->opts.targets[i].url, t->url))
			return &p->lanes[i];
	return NULL;
}

static bool are_same_targets(const struct pushes_options *a, const struct pushes_options *b)
{
	bool is_same = a->target_cnt == b->target_cnt;

	for (size_t i = 0; i < a->target_cnt && is_same; i++)
		is_same = !strcmp(a->targets[i].url, b->targets[i].url);
	return is_same;
}

/* Close lanes that are not in others. */
static void close_others(struct lane *lanes, size_t cnt, const struct lane *others,
			 size_t other_cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		size_t j = 0;

		while (j < other_cnt && others[j].sender != lanes[i].sender)
			j++;
		if (j == other_cnt)
			close_lane(&lanes[i]);
	}
}

static int change(struct pushes *p, const struct pushes_options *opts)
{
	struct lane *lanes = calloc(opts->target_cnt + 1, sizeof(*lanes));
	struct push_http_options identity = { 0 };
	size_t cnt = 0;
	int err = lanes ? 0 : -ENOMEM;

	while (!err && cnt < opts->target_cnt) {
		const struct lane *known = find_lane(p, &opts->targets[cnt]);

		if (known)
			lanes[cnt] = *known;
		else
			err = open_lane(p, opts, cnt, &lanes[cnt]);
		cnt += !err;
	}
	if (err) {
		close_others(lanes, cnt, p->lanes, p->opts.target_cnt);
		free(lanes);
		return err;
	}
	close_others(p->lanes, p->opts.target_cnt, lanes, cnt);
	/* A child at work identifies targets by index. */
	p->targets_id += !are_same_targets(&p->opts, opts);
	free(p->lanes);
	p->lanes = lanes;
	p->opts = *opts;
	push_clock_set(&p->clock, cnt ? opts->interval_ns : 0, now_ns());
	set_identity(opts, &identity);
	for (size_t i = 0; i < cnt; i++) {
		push_sender_set_identity(lanes[i].sender, &identity);
		if (lanes[i].upload)
			debuginfo_upload_set_identity(lanes[i].upload, &identity);
	}
	return 0;
}

static void on_upload(void *ctx, int fd)
{
	const struct pushes *p = ctx;

	(void)fd;
	for (size_t i = 0; i < p->opts.target_cnt; i++)
		if (p->lanes[i].upload)
			debuginfo_upload_run(p->lanes[i].upload);
}

static int watch(struct pushes *p)
{
	int err = 0;

	for (size_t i = 0; i < p->opts.target_cnt && !err; i++)
		if (p->lanes[i].upload)
			err = loop_watch(p->loop, debuginfo_upload_fd(p->lanes[i].upload),
					 on_upload, p);
	return err;
}

static void unwatch(struct pushes *p)
{
	for (size_t i = 0; i < p->opts.target_cnt; i++)
		if (p->lanes[i].upload)
			loop_unwatch(p->loop, debuginfo_upload_fd(p->lanes[i].upload));
}

int pushes_open(const struct pushes_options *opts, struct reader *reader, struct loop *loop,
		struct pushes **ret)
{
	struct pushes *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	p->reader = reader;
	p->loop = loop;
	if (gethostname(p->node, sizeof(p->node) - 1))
		p->node[0] = '\0';
	if (opts->sends_debuginfo && !sandbox_is_whole()) {
		log_error("serve: --push-debuginfo: " SANDBOX_NOT_WHOLE
			  "; it could also push other data: leave the option out");
		err = -EOPNOTSUPP;
	}
	if (!err && opts->spool_dir)
		err = check_spool_dir(opts->spool_dir);
	if (!err)
		err = change(p, opts);
	if (!err)
		err = watch(p);
	if (err)
		pushes_close(p);
	else
		*ret = p;
	return err;
}

int pushes_change(struct pushes *p, const struct pushes_options *opts)
{
	int err, watch_err;

	unwatch(p); /* some will be closed */
	err = change(p, opts);
	watch_err = watch(p);
	if (watch_err)
		log_warn("serve: some answers to pushes will be read late: %s",
			 strerror(-watch_err));
	return err;
}

size_t pushes_cnt(const struct pushes *p)
{
	return p ? p->opts.target_cnt : 0;
}

void pushes_offer(struct pushes *p, const struct track_files *files)
{
	int err = 0;

	p->files = files;
	for (size_t i = 0; i < track_files_cnt(files); i++) {
		const struct track_file *file = track_files_at(files, i);

		if (!file || file->is_vdso || file->fd < 0)
			continue;
		for (size_t t = 0; t < p->opts.target_cnt; t++)
			if (p->lanes[t].upload && !err)
				err = debuginfo_upload_offer(p->lanes[t].upload,
							     file->build_id_hex);
	}
	if (err)
		log_warn("push: cannot offer debug information: %s", strerror(-err));
}

bool pushes_is_due(struct pushes *p)
{
	if (push_clock_is_due(&p->clock, now_ns()))
		p->is_due = true;
	return p->is_due && p->opts.target_cnt;
}

void pushes_begin(struct pushes *p)
{
	p->is_due = false;
}

int pushes_wait_ms(const struct pushes *p)
{
	if (!p->opts.target_cnt)
		return -1;
	return p->is_due ? 0 : push_clock_wait_ms(&p->clock, now_ns());
}

void pushes_hurry(struct pushes *p)
{
	p->is_due = true;
}

static bool is_held(const void *ctx, const char *build_id)
{
	return debuginfo_upload_is_held(ctx, build_id);
}

static int make_request(const struct pushes *p, size_t i, struct profile *profile,
			const struct push_label *labels, size_t label_cnt, int fd)
{
	struct head head = { .targets_id = p->targets_id, .target = (uint32_t)i };
	off_t begin = lseek(fd, 0, SEEK_CUR);
	struct profile_strip bare = { 0 };
	struct push_lost lost = { 0 };
	uint8_t *body = NULL;
	int err = 0;

	if (p->lanes[i].upload)
		err = profile_strip_begin(profile, is_held, p->lanes[i].upload, &bare);
	if (!err)
		err = push_profile_encode(&p->opts.targets[i], profile, labels, label_cnt, &lost,
					  &body, &head.bytes);
	profile_strip_end(profile, &bare);
	if (!err && body) {
		err = write_all(fd, &head, sizeof(head));
		if (!err)
			err = write_all(fd, body, head.bytes);
		/* No memory: what follows must not be read as the rest of this body. */
		if (err && (ftruncate(fd, begin) || lseek(fd, begin, SEEK_SET) < 0))
			_exit(1);
	}
	if (!err && (lost.folded_series || lost.folded_rows || lost.cut_stacks))
		log_debug("push: for '%s', %zu series and %zu rows were merged, %zu stacks "
			  "truncated",
			  p->opts.targets[i].name, lost.folded_series, lost.folded_rows,
			  lost.cut_stacks);
	free(body);
	return err;
}

static int make_process(const struct pushes *p, const struct result_source *src,
			const struct result_moment *moment, const struct result_request *r, int fd)
{
	char pid[16], comm[sizeof(((struct process_info *)NULL)->comm) + 1] = "";
	struct push_label *labels = calloc(p->opts.label_cnt + 4, sizeof(*labels));
	struct profile *profile = NULL;
	struct process_info info;
	size_t cnt = p->opts.label_cnt;
	int err;

	if (!labels)
		return -ENOMEM;
	if (!process_glance(src->reader, r->pid, &info))
		memcpy(comm, info.comm, sizeof(info.comm));
	make_printable(comm);
	snprintf(pid, sizeof(pid), "%d", r->pid);
	/* The user's labels come first, and win. */
	memcpy(labels, p->opts.labels, cnt * sizeof(*labels));
	labels[cnt++] = (struct push_label){ "job", "heaptap" };
	labels[cnt++] = (struct push_label){ "node", p->node };
	labels[cnt++] = (struct push_label){ "pid", pid };
	labels[cnt++] = (struct push_label){ "comm", comm };
	err = result_build(src, moment, r, &profile);
	for (size_t i = 0; i < p->opts.target_cnt && profile; i++) {
		/* A profile too large for one target may suit another. */
		int target_err = make_request(p, i, profile, labels, cnt, fd);

		err = err ? err : target_err;
	}
	profile_free(profile);
	free(labels);
	return err;
}

int pushes_make(const struct pushes *p, const struct result_source *src,
		const struct result_moment *moment, int fd)
{
	uint64_t names_end_ns = now_ns() + NAMES_NS;
	int first_err = 0;

	for (size_t i = 0; i < tracker_running_cnt(src->tracker); i++) {
		const struct result_request r = { .endpoint = ENDPOINT_HEAP,
						  .pid = tracker_running_at(src->tracker, i),
						  .names_ns = result_names_share(names_end_ns) };
		int err = make_process(p, src, moment, &r, fd);

		if (!err)
			continue;
		log_warn("push: no profile of process %d: %s", r.pid, strerror(-err));
		first_err = first_err ? first_err : err;
	}
	return first_err;
}

void pushes_take(struct pushes *p, int fd)
{
	struct stat st;
	struct head head;
	off_t at = 0;

	if (fstat(fd, &st))
		return;
	while (pread(fd, &head, sizeof(head), at) == sizeof(head)) {
		uint8_t *body;
		int err;

		at += sizeof(head);
		if (head.target >= p->opts.target_cnt || head.bytes > (uint64_t)(st.st_size - at))
			return; /* the child was ended while writing this */
		if (head.targets_id != p->targets_id)
			return; /* for targets that were changed meanwhile */
		body = malloc(head.bytes + 1);
		if (!body || pread(fd, body, head.bytes, at) != (ssize_t)head.bytes) {
			log_warn("push: cannot take over a request");
			free(body);
			return;
		}
		at += (off_t)head.bytes;
		err = push_sender_take(p->lanes[head.target].sender, body, head.bytes);
		if (err)
			log_warn("push: a request for '%s' is lost: %s",
				 p->opts.targets[head.target].name, strerror(-err));
	}
}

bool pushes_are_waiting(const struct pushes *p)
{
	struct push_queue_stats stats;

	for (size_t i = 0; i < p->opts.target_cnt; i++) {
		push_sender_stats(p->lanes[i].sender, &stats);
		if (stats.spool.cnt && !stats.is_failing)
			return true;
	}
	return false;
}

void pushes_view(const struct pushes *p, size_t i, struct serve_push *ret)
{
	struct debuginfo_upload_stats debuginfo = { 0 };
	struct push_queue_stats stats;

	push_sender_stats(p->lanes[i].sender, &stats);
	if (p->lanes[i].upload)
		debuginfo_upload_stats(p->lanes[i].upload, &debuginfo);
	*ret = (struct serve_push){
		.target = p->opts.targets[i].name,
		.sent_cnt = stats.sent_cnt,
		.refused_cnt = stats.refused_cnt,
		.dropped_cnt = stats.spool.dropped_cnt + stats.spool.corrupt_cnt,
		.failed_cnt = stats.failed_cnt,
		.waiting_cnt = stats.spool.cnt,
		.debuginfo_uploaded_cnt = (double)debuginfo.uploaded_cnt,
		.debuginfo_uploaded_bytes = (double)debuginfo.uploaded_bytes,
		.debuginfo_waiting_cnt = (double)debuginfo.waiting_cnt,
		.debuginfo_known_cnt = (double)debuginfo.known_cnt,
		.debuginfo_nameless_cnt = (double)debuginfo.nameless_cnt,
		.debuginfo_large_cnt = (double)debuginfo.large_cnt,
		.debuginfo_refused_cnt = (double)debuginfo.refused_cnt,
	};
}
