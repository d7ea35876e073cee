/* SPDX-License-Identifier: MIT */
/* file_job.c - see file_content.h. */
#include "track/file_content.h"

#include <poll.h>

#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "base/clock.h"
#include "base/sandbox.h"
#include "base/fd.h"
#include "elf/elf_budget.h"
#include "proc/reader.h"
#include "elf/unwind_table.h"

/* Limits of an analysis beyond those of elf_budget.h, which bounds what real files need. */
#define DATA_BYTES_BASE (96ULL << 20)
#define DATA_BYTES_DEBUG (256ULL << 20)
#define MAP_BYTES (8ULL << 30) /* files are mapped as a whole */
#define WALL_S_BASE 5
#define WALL_BYTES_PER_S (16ULL << 20)

/* More than real files have. */
#define SEGMENTS_CAP 65536
#define SITES_CAP 4096
#define PROBES_CAP 4096

#define FAMILY_BYTES 32

struct file_args {
	struct alloc_options opts;
	uint32_t wants_table, has_session;
	uint32_t path_bytes, root_bytes; /* of the two strings that follow, each with its NUL */
};

/* The job's answer: this head, then the arrays in this order. */
struct file_head {
	int32_t err;
	uint32_t is_partly_read;
	uint64_t steps;
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	char family[FAMILY_BYTES]; /* "": no allocator */
	struct alloc_unseen unseen;
	uint32_t is_go;
	uint32_t segment_cnt, site_cnt, inner_cnt;
	uint32_t has_tags, ready_cnt, task_exit_cnt;
	uint32_t has_sampler, sampler_is_whole, sampler_site_cnt;
	char sampler_provider[SAMPLER_PROVIDER_BYTES];
	char sampler_problem[SAMPLER_PROBLEM_BYTES];
	uint64_t loaded_off, to_state; /* struct track_loader */
	uint32_t traces;
	uint32_t has_table, page_cnt, row_cnt;
	uint32_t fde_cnt, bad_fde_cnt, unsupported_row_cnt;
	uint64_t first_page;
};

struct said_site {
	uint32_t row; /* index in alloc_table() */
	struct alloc_site site; /* with row NULL */
};

/*
 * In the job.
 */

struct out {
	uint8_t *data;
	size_t bytes, cap;
	int err;
};

static void put(struct out *o, const void *data, size_t bytes)
{
	if (o->err || !bytes)
		return;
	o->err = vec_grow((void **)&o->data, &o->cap, o->bytes + bytes, 1);
	if (o->err)
		return;
	memcpy(o->data + o->bytes, data, bytes);
	o->bytes += bytes;
}

static void put_sites(struct out *o, const struct alloc_file *af)
{
	const struct alloc_row *rows;
	const struct alloc_site *site;
	size_t row_cnt;

	rows = alloc_table(&row_cnt);
	vec_each(&af->sites, site) {
		struct said_site said;

		memset(&said, 0, sizeof(said));
		said.row = (uint32_t)(site->row - rows);
		said.site = *site;
		said.site.row = NULL;
		put(o, &said, sizeof(said));
	}
	put(o, af->inner.data, af->inner.cnt * sizeof(*af->inner.data));
}

int file_job_say(int err, const struct file_content *c, uint8_t **ret, size_t *ret_bytes)
{
	const struct alloc_file *af = c->alloc;
	const struct file_tags *tags = c->tags;
	const struct file_sampler *sampler = c->sampler;
	const struct unwind_table *t = c->table;
	struct file_head head;
	struct out o = { 0 };

	memset(&head, 0, sizeof(head));
	head.err = err;
	head.is_partly_read = c->is_partly_read;
	head.steps = c->steps;
	memcpy(head.build_id_hex, c->build_id_hex, sizeof(head.build_id_hex));
	head.segment_cnt = (uint32_t)c->exec.cnt;
	head.unseen = c->unseen;
	head.is_go = c->is_go;
	if (af) {
		strncpy(head.family, af->family, sizeof(head.family) - 1);
		head.site_cnt = (uint32_t)af->sites.cnt;
		head.inner_cnt = (uint32_t)af->inner.cnt;
	}
	if (tags) {
		head.has_tags = 1;
		head.ready_cnt = (uint32_t)tags->readies.cnt;
		head.task_exit_cnt = (uint32_t)tags->task_exits.cnt;
	}
	if (sampler) {
		head.has_sampler = 1;
		head.sampler_is_whole = sampler->is_whole;
		head.sampler_site_cnt = (uint32_t)sampler->sites.cnt;
		memcpy(head.sampler_provider, sampler->provider, sizeof(sampler->provider));
		memcpy(head.sampler_problem, sampler->problem, sizeof(sampler->problem));
	}
	head.loaded_off = c->loader.loaded_off;
	head.to_state = c->loader.to_state;
	head.traces = c->loader.traces;
	if (t) {
		head.has_table = 1;
		head.first_page = t->first_page;
		head.page_cnt = t->page_cnt;
		head.row_cnt = t->row_cnt;
		head.fde_cnt = t->fde_cnt;
		head.bad_fde_cnt = t->bad_fde_cnt;
		head.unsupported_row_cnt = t->unsupported_row_cnt;
	}
	put(&o, &head, sizeof(head));
	put(&o, c->exec.data, c->exec.cnt * sizeof(*c->exec.data));
	if (af)
		put_sites(&o, af);
	if (tags) {
		put(&o, &tags->where, sizeof(tags->where));
		put(&o, tags->readies.data, tags->readies.cnt * sizeof(*tags->readies.data));
		put(&o, tags->task_exits.data,
		    tags->task_exits.cnt * sizeof(*tags->task_exits.data));
	}
	if (sampler)
		put(&o, sampler->sites.data, sampler->sites.cnt * sizeof(*sampler->sites.data));
	if (t) {
		put(&o, t->pages, t->page_cnt * sizeof(*t->pages));
		put(&o, t->rows, t->row_cnt * sizeof(*t->rows));
	}
	if (o.err) {
		free(o.data);
		return o.err;
	}
	*ret = o.data;
	*ret_bytes = o.bytes;
	return 0;
}

static uint64_t bytes_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static int seal(int fd, bool has_debug)
{
	const struct sandbox_limits limits = {
		.data_bytes = DATA_BYTES_BASE + ELF_BYTES_PER_BYTE * bytes_of(fd) +
			      (has_debug ? DATA_BYTES_DEBUG : 0),
		.map_bytes = MAP_BYTES,
	};

	return sandbox_seal(getppid(), &limits);
}

static int read_content(int fd, const struct file_args *args, struct file_source *source,
			struct file_content *ret)
{
	struct elf_file *ef = NULL, *debug = NULL;
	int err = elf_file_open_fd(fd, &ef);

	if (err)
		return err == -ENOMEM ? err : -ENOEXEC;
	debug = file_content_open_debug(ef, source);
	err = seal(fd, debug != NULL);
	if (!err)
		err = file_content_read(ef, debug, source, &args->opts, ret);
	elf_file_close(debug);
	elf_file_close(ef);
	return err;
}

int file_job_run(uint32_t kind, int fd, const void *raw, size_t bytes, int out_fd)
{
	const char *text = (const char *)raw + sizeof(struct file_args);
	struct file_content content = { 0 };
	struct file_source source = { 0 };
	struct file_args args;
	uint8_t *said = NULL;
	size_t said_bytes = 0;
	int err;

	(void)kind;
	if (bytes < sizeof(args))
		return 1;
	memcpy(&args, raw, sizeof(args));
	if (bytes != sizeof(args) + args.path_bytes + args.root_bytes)
		return 1;
	source.path = text;
	source.root = text + args.path_bytes;
	source.wants_table = args.wants_table;
	source.has_session = args.has_session;
	err = read_content(fd, &args, &source, &content);
	err = file_job_say(err, &content, &said, &said_bytes);
	if (!err)
		err = write_all(out_fd, said, said_bytes);
	return err ? 1 : 0; /* the process ends, and frees the rest */
}

/*
 * In main.
 */

int file_job_start(struct reader *reader, uint32_t uid, int fd, uint64_t file_bytes,
		   const struct file_source *source, const struct alloc_options *opts, int *ret_fd)
{
	uint32_t wall_s = WALL_S_BASE + (uint32_t)(file_bytes / WALL_BYTES_PER_S);
	struct file_args args;
	struct out o = { 0 };
	int err;

	memset(&args, 0, sizeof(args));
	args.opts = *opts;
	args.wants_table = source->wants_table;
	args.has_session = source->has_session;
	args.path_bytes = (uint32_t)strlen(source->path) + 1;
	args.root_bytes = (uint32_t)strlen(source->root) + 1;
	put(&o, &args, sizeof(args));
	put(&o, source->path, args.path_bytes);
	put(&o, source->root, args.root_bytes);
	err = o.err ? o.err :
		      reader_run_job(reader, uid, FILE_JOB, fd, o.data, o.bytes, wall_s, ret_fd);
	free(o.data);
	return err;
}

struct in {
	const uint8_t *at, *end;
};

/* Copy cnt elements for the caller; NULL if there are none. */
static int take(struct in *in, size_t cnt, size_t element_bytes, void *ret_data, size_t *ret_cnt)
{
	size_t bytes = cnt * element_bytes; /* 32 bits each */
	void *data;

	if (bytes > (size_t)(in->end - in->at))
		return -EBADMSG;
	if (!cnt)
		return 0;
	data = malloc(bytes);
	if (!data)
		return -ENOMEM;
	memcpy(data, in->at, bytes);
	in->at += bytes;
	memcpy(ret_data, &data, sizeof(data));
	*ret_cnt = cnt;
	/* cppcheck-suppress memleak ; the caller has it now */
	return 0;
}

/* Copy into a vector. */
#define take_vec(in, count, v) \
	((v)->cap = (count), take((in), (count), sizeof(*(v)->data), &(v)->data, &(v)->cnt))

static bool is_text(const char *text, size_t bytes)
{
	return memchr(text, '\0', bytes) != NULL;
}

static int take_site(struct in *in, struct alloc_site *ret)
{
	struct said_site said;
	const struct alloc_row *rows;
	size_t row_cnt;

	if ((size_t)(in->end - in->at) < sizeof(said))
		return -EBADMSG;
	memcpy(&said, in->at, sizeof(said));
	in->at += sizeof(said);
	rows = alloc_table(&row_cnt);
	if (said.row >= row_cnt || !is_text(said.site.symbol, sizeof(said.site.symbol)) ||
	    !is_text(said.site.placement.insn, sizeof(said.site.placement.insn)) ||
	    !is_text(said.site.placement.why, sizeof(said.site.placement.why)) ||
	    !tap_spot_is_sound(&said.site.tap))
		return -EBADMSG;
	*ret = said.site;
	ret->row = &rows[said.row];
	return 0;
}

static int take_alloc(struct in *in, const struct file_head *head, struct file_content *ret)
{
	struct alloc_file *af;
	int err = 0;

	if (!head->family[0])
		return 0;
	if (head->site_cnt > SITES_CAP)
		return -EBADMSG;
	ret->alloc = af = calloc(1, sizeof(*af));
	if (!af)
		return -ENOMEM;
	af->family = alloc_family_name(head->family);
	if (!af->family)
		return -EBADMSG;
	for (uint32_t i = 0; i < head->site_cnt && !err; i++) {
		struct alloc_site site;

		err = take_site(in, &site);
		if (!err)
			err = vec_push(&af->sites, site);
	}
	return err ? err : take_vec(in, head->inner_cnt, &af->inner);
}

static int take_tags(struct in *in, const struct file_head *head, struct file_content *ret)
{
	struct file_tags *tags;
	int err;

	if (!head->has_tags)
		return 0;
	ret->tags = tags = calloc(1, sizeof(*tags));
	if (!tags)
		return -ENOMEM;
	if ((size_t)(in->end - in->at) < sizeof(tags->where) || head->ready_cnt > PROBES_CAP ||
	    head->task_exit_cnt > PROBES_CAP)
		return -EBADMSG;
	memcpy(&tags->where, in->at, sizeof(tags->where));
	in->at += sizeof(tags->where);
	if (tags->where.descriptor_cnt > TAG_DESCRIPTORS_CAP ||
	    !is_text(tags->where.problem, sizeof(tags->where.problem)))
		return -EBADMSG;
	err = take_vec(in, head->ready_cnt, &tags->readies);
	return err ? err : take_vec(in, head->task_exit_cnt, &tags->task_exits);
}

static bool is_code(const struct file_content *c, uint64_t off)
{
	const struct track_segment *s;

	vec_each(&c->exec, s)
		if (off >= s->off && off - s->off < s->bytes)
			return true;
	return false;
}

/* Probes are put at these offsets, so they must be in this file's code. */
static int take_sampler(struct in *in, const struct file_head *head, struct file_content *ret)
{
	const struct sampler_site *site;
	struct file_sampler *s;
	int err;

	if (!head->has_sampler)
		return 0;
	ret->sampler = s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (head->sampler_site_cnt > SAMPLER_SITES_CAP ||
	    !is_text(head->sampler_provider, sizeof(head->sampler_provider)) ||
	    !is_text(head->sampler_problem, sizeof(head->sampler_problem)))
		return -EBADMSG;
	s->is_whole = head->sampler_is_whole;
	memcpy(s->provider, head->sampler_provider, sizeof(s->provider));
	memcpy(s->problem, head->sampler_problem, sizeof(s->problem));
	err = take_vec(in, head->sampler_site_cnt, &s->sites);
	if (err)
		return err;
	vec_each(&s->sites, site)
		if (!is_code(ret, site->off) || site->is_free > 1)
			return -EBADMSG;
	return 0;
}

/* A probe is put at this offset, so it must be in this file's code; 0: no loader. */
static int take_loader(const struct file_head *head, struct file_content *ret)
{
	if (head->traces > 1 ||
	    (head->loaded_off ? !is_code(ret, head->loaded_off) : head->to_state != 0))
		return -EBADMSG;
	ret->loader = (struct track_loader){ head->loaded_off, head->to_state, head->traces };
	return 0;
}

static bool is_table(const struct unwind_table *t)
{
	for (uint32_t i = 0; i < t->page_cnt; i++)
		if (t->pages[i].row_cnt &&
		    (uint64_t)t->pages[i].first + t->pages[i].row_cnt > t->row_cnt)
			return false;
	return t->page_cnt > 0;
}

static int take_table(struct in *in, const struct file_head *head, struct file_content *ret)
{
	struct unwind_table *t;
	size_t cnt = 0;
	int err;

	if (!head->has_table)
		return 0;
	ret->table = t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->first_page = head->first_page;
	t->fde_cnt = head->fde_cnt;
	t->bad_fde_cnt = head->bad_fde_cnt;
	t->unsupported_row_cnt = head->unsupported_row_cnt;
	err = take(in, head->page_cnt, sizeof(*t->pages), &t->pages, &cnt);
	t->page_cnt = (uint32_t)cnt;
	cnt = 0;
	if (!err)
		err = take(in, head->row_cnt, sizeof(*t->rows), &t->rows, &cnt);
	t->row_cnt = (uint32_t)cnt;
	if (!err && (head->page_cnt > HT_PAGES_CAP || !is_table(t)))
		err = -EBADMSG;
	return err;
}

int file_job_read(const uint8_t *said, size_t bytes, struct file_content *ret)
{
	struct in in = { said + sizeof(struct file_head), said + bytes };
	struct file_head head;
	int err;

	if (bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, said, sizeof(head));
	if (head.err)
		return head.err == -ENOEXEC || head.err == -ENOMEM ? head.err : -EBADMSG;
	if (!is_text(head.build_id_hex, sizeof(head.build_id_hex)) ||
	    !is_text(head.family, sizeof(head.family)) || head.segment_cnt > SEGMENTS_CAP ||
	    !is_text(head.unseen.family, sizeof(head.unseen.family)) ||
	    head.unseen.kind >= ALLOC_UNSEEN_CNT)
		return -EBADMSG;
	ret->unseen = head.unseen;
	ret->is_go = head.is_go != 0;
	memcpy(ret->build_id_hex, head.build_id_hex, sizeof(ret->build_id_hex));
	ret->is_partly_read = head.is_partly_read;
	ret->steps = head.steps;
	err = take_vec(&in, head.segment_cnt, &ret->exec);
	if (!err)
		err = take_loader(&head, ret);
	if (!err)
		err = take_alloc(&in, &head, ret);
	if (!err)
		err = take_tags(&in, &head, ret);
	if (!err)
		err = take_sampler(&in, &head, ret);
	if (!err)
		err = take_table(&in, &head, ret);
	return !err && in.at != in.end ? -EBADMSG : err;
}

/*
 * Jobs under way.
 */

#define PIPE_BYTES (1 << 20) /* so that few turns are needed; a larger pipe saves no work */
#define SAID_BYTES_CAP (512ULL << 20) /* enough for the tables of 2 GB of text */
#define BYTES_AT_ONCE (64ULL << 20)
/* A job ends itself in time, unless it hangs in the kernel. */
#define DUE_NS_BASE (7 * NS_PER_S)
#define DUE_BYTES_PER_S (16ULL << 20)
#define DUE_BYTES_MAX (64ULL << 30) /* a file with holes may have any size */

bool file_readings_have_room(const struct file_readings *rs, uint32_t uid)
{
	struct file_reading **r;
	size_t of_user = 0;

	vec_each(&rs->list, r)
		of_user += (*r)->uid == uid;
	return rs->list.cnt < FILE_READINGS_CAP && of_user < FILE_READINGS_OF_USER_CAP;
}

int file_readings_start(struct file_readings *rs, struct reader *reader,
			const struct file_reading *fresh, const struct file_source *source,
			const struct alloc_options *opts)
{
	struct file_reading *r, **other;
	uint64_t bytes = fresh->facts.bytes;
	int err;

	vec_each(&rs->list, other)
		bytes += (*other)->facts.bytes;
	/* Reading takes time linear in these bytes. A file that is larger is read alone. */
	if (!file_readings_have_room(rs, fresh->uid) || (rs->list.cnt && bytes > BYTES_AT_ONCE))
		return -EBUSY;
	r = malloc(sizeof(*r));
	if (!r || vec_reserve(&rs->list, rs->list.cnt + 1)) {
		free(r);
		return -ENOMEM;
	}
	*r = *fresh;
	err = file_job_start(reader, r->uid, r->fd, r->facts.bytes, source, opts, &r->said_fd);
	if (err) {
		free(r);
		return err;
	}
	(void)fcntl(r->said_fd, F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(r->said_fd, F_SETFL, O_NONBLOCK);
	r->due_ns = now_ns() + file_reading_limit_ns(r->facts.bytes);
	rs->list.data[rs->list.cnt++] = r;
	return 0;
}

uint64_t file_reading_limit_ns(uint64_t file_bytes)
{
	if (file_bytes > DUE_BYTES_MAX)
		file_bytes = DUE_BYTES_MAX;
	return DUE_NS_BASE + file_bytes / DUE_BYTES_PER_S * NS_PER_S;
}

void file_reading_free(struct file_reading *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	close(r->said_fd);
	free(r->path);
	free(r->root);
	vec_release(&r->said);
	free(r);
}

void file_readings_release(struct file_readings *rs)
{
	struct file_reading **r;

	vec_each(&rs->list, r)
		file_reading_free(*r);
	vec_release(&rs->list);
}

/* Take in what has come so far. */
static void take_answer(struct file_reading *r)
{
	ssize_t n;

	do {
		if (r->said.cnt > SAID_BYTES_CAP ||
		    vec_reserve(&r->said, r->said.cnt + PIPE_BYTES)) {
			r->is_over = true; /* and incomplete */
			r->said.cnt = 0;
			return;
		}
		n = read(r->said_fd, r->said.data + r->said.cnt, PIPE_BYTES);
		if (n > 0)
			r->said.cnt += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	r->is_over = n == 0 || errno != EAGAIN;
}

static struct file_reading *take_over(struct file_readings *rs, uint64_t now)
{
	for (size_t i = 0; i < rs->list.cnt; i++) {
		struct file_reading *r = rs->list.data[i];

		if (!r->is_over && now < r->due_ns)
			continue;
		rs->list.data[i] = rs->list.data[--rs->list.cnt];
		return r;
	}
	return NULL;
}

struct file_reading *file_readings_next(struct file_readings *rs, int wait_ms)
{
	uint64_t until_ns = now_ns() + (uint64_t)wait_ms * NS_PER_MS, now;
	struct pollfd p[FILE_READINGS_CAP];
	struct file_reading *over;

	while (!(over = take_over(rs, now = now_ns())) && rs->list.cnt) {
		int left_ms = now < until_ns ? (int)((until_ns - now) / NS_PER_MS) + 1 : 0;
		int n;

		for (size_t i = 0; i < rs->list.cnt; i++)
			p[i] = (struct pollfd){ .fd = rs->list.data[i]->said_fd, .events = POLLIN };
		n = poll(p, rs->list.cnt, wait_ms ? left_ms : 0);
		for (size_t i = 0; i < rs->list.cnt; i++)
			if (n > 0 && p[i].revents)
				take_answer(rs->list.data[i]);
		if (n <= 0 && !left_ms)
			return NULL;
	}
	return over;
}
