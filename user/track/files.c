/* SPDX-License-Identifier: MIT */
/*
 * files.c - the table of files that tracked processes map: each is identified, read once, compiled to unwind rows and
 * entry points of allocators, and forgotten when it is no longer mapped (see files.h).
 */
#include "track/files.h"

#include <elf.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/fd.h"
#include "elf/elf_file.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "kernel/reclaim.h"
#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "proc/proc_text.h"
#include "proc/reader.h"
#include "track/file_content.h"
#include "track/policy.h"
#include "track/jit_code.h"

/* A device number that no kernel uses: the vDSO is the same for all processes. */
#define VDSO_DEV UINT32_MAX
/* Likewise, for code made at run time; its inode number is the file's id. */
#define JIT_DEV (UINT32_MAX - 1)

struct file_key {
	uint64_t ino;
	uint32_t dev;
	uint32_t set_aside; /* 0: named as in mappings; else the file's id: see set_aside() */
};

/* A file that is not ELF is read again if it was not met for this time. */
#define NOT_ELF_NS (600 * NS_PER_S)
/* A reading that did not finish is retried after this time, then after twice as long: a disk that
 * hangs for a moment must not hide the C library from a daemon for good. */
#define RETRY_FIRST_NS (10 * NS_PER_S)
#define RETRY_LAST_NS (600 * NS_PER_S)

struct entry {
	struct file_key key;
	struct track_file *file; /* NULL: not ELF, or its reading did not finish */
	uint64_t met_ns;
	uint64_t retry_ns; /* earliest retry, if its reading did not finish; else 0 */
	uint64_t wait_ns; /* wait before that retry */
};

struct track_files {
	struct engine *engine;
	const struct track_policy *policy;
	struct hmap by_key; /* struct file_key -> index in all */
	VEC(struct entry) all;
	VEC(uint32_t) by_id; /* engine id -> index in all, plus 1 */
	track_file_fn on_over;
	void *ctx; /* for on_over */
	struct file_readings readings;
	uint64_t next_retry_ns; /* of the earliest retry to come; UINT64_MAX: none */
	uint64_t partly_read_cnt, given_up_cnt;
	struct log_limit partly_limit;
};

int track_files_new(struct engine *engine, const struct track_policy *policy,
		    struct track_files **ret)
{
	struct track_files *files = calloc(1, sizeof(*files));

	if (!files)
		return -ENOMEM;
	files->engine = engine;
	files->policy = policy;
	files->next_retry_ns = UINT64_MAX;
	files->partly_limit = (struct log_limit){ .every_ns = 60 * NS_PER_S, .burst = 5 };
	hmap_init(&files->by_key, sizeof(struct file_key));
	*ret = files;
	return 0;
}

void track_files_watch(struct track_files *files, track_file_fn on_over, void *ctx)
{
	files->on_over = on_over;
	files->ctx = ctx;
}

static void file_free(struct track_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->root);
	jit_code_unref(file->jit);
	vec_release(&file->exec);
	alloc_file_free(file->alloc);
	file_tags_free(file->tags);
	file_sampler_free(file->sampler);
	free(file);
}

void track_files_free(struct track_files *files)
{
	if (!files)
		return;
	file_readings_release(&files->readings);
	for (size_t i = 0; i < files->all.cnt; i++)
		file_free(files->all.data[i].file);
	vec_release(&files->all);
	vec_release(&files->by_id);
	hmap_release(&files->by_key);
	free(files);
}

/* Let BPF find the file in mappings that user space has not seen yet. */
static int add_inode(const struct track_files *files, const struct track_file *file)
{
	if (!files->engine || file->is_vdso || !file->exec.cnt)
		return 0;
	return engine_add_inode(files->engine, file->ino, file->dev, file->id,
				file->exec.data[0].vaddr - file->exec.data[0].off);
}

/* Without rows that could be marked, calls from the probed functions themselves are known by their place. */
static int hand_without_rows(struct track_files *files, struct track_file *file)
{
	const struct alloc_file *af = file->alloc;
	struct ht_range probed[HT_INNER_CAP];
	size_t cnt = 0;

	for (size_t i = 0; af && i < af->sites.cnt && cnt < HT_INNER_CAP; i++) {
		const struct alloc_site *site = &af->sites.data[i];

		if (site->row->op != HT_OP_FREE)
			probed[cnt++] = (struct ht_range){ site->fn_vaddr,
							   site->fn_vaddr + site->fn_bytes };
	}
	return engine_add_file(files->engine, NULL, probed, cnt, HT_FILE_INNER_IS_PROBED,
			       &file->id);
}

/* Give unwind rows and the allocator's own code to the engine. */
static int hand_to_engine(struct track_files *files, struct track_file *file,
			  const struct unwind_table *table)
{
	const struct alloc_file *af = file->alloc;
	struct ht_range inner[HT_INNER_CAP];
	size_t inner_cnt = 0;
	int err = -ENOSPC;

	for (size_t i = 0; af && i < af->inner.cnt && i < HT_INNER_CAP; i++)
		inner[inner_cnt++] = (struct ht_range){ af->inner.data[i].start_vaddr,
							af->inner.data[i].end_vaddr };
	if (table)
		err = engine_add_file(files->engine, table, inner, inner_cnt, 0, &file->id);
	/* if there is no room for its rows, at least stacks get its name */
	return err == -ENOSPC ? hand_without_rows(files, file) : err;
}

static void say_partly_read(struct track_files *files, const struct track_file *file)
{
	files->partly_read_cnt++;
	if (log_limit_allows(&files->partly_limit, now_ns()))
		log_warn("'%s' was read only in part, because it takes too much work for its size "
			 "(is it damaged?); some of its functions may be missing in stacks",
			 file->path);
}

/* Move what was read into the file. */
static int take_content(struct track_files *files, struct track_file *file, struct file_content *c)
{
	int err = 0;

	memcpy(file->build_id_hex, c->build_id_hex, sizeof(c->build_id_hex));
	file->exec.data = c->exec.data;
	file->exec.cnt = c->exec.cnt;
	file->exec.cap = c->exec.cap;
	memset(&c->exec, 0, sizeof(c->exec));
	file->alloc = c->alloc;
	file->unseen = c->unseen;
	file->is_go = c->is_go;
	file->tags = c->tags;
	file->sampler = c->sampler;
	file->loader = c->loader;
	c->alloc = NULL;
	c->tags = NULL;
	c->sampler = NULL;
	file->read_steps = c->steps;
	file->is_unpaid = true;
	file->is_partly_read = c->is_partly_read;
	if (file->is_partly_read)
		say_partly_read(files, file);
	if (files->engine)
		err = hand_to_engine(files, file, c->table);
	else
		file->id = files->all.cnt + 1;
	return err;
}

static struct entry *find_entry(const struct track_files *files, const struct file_key *key)
{
	const uint64_t *idx = hmap_get(&files->by_key, key);

	return idx ? &files->all.data[*idx] : NULL;
}

/* The last entry moves to its place. */
static void remove_entry(struct track_files *files, size_t i)
{
	struct entry *entry = &files->all.data[i], *last = &files->all.data[files->all.cnt - 1];

	hmap_del(&files->by_key, &entry->key);
	if (entry->file)
		files->by_id.data[entry->file->id] = 0;
	file_free(entry->file);
	if (entry != last) {
		*entry = *last;
		*hmap_get(&files->by_key, &entry->key) = i;
		if (entry->file)
			files->by_id.data[entry->file->id] = i + 1;
	}
	files->all.cnt--;
}

/* Enter a file, or NULL for "not an ELF file", under its key. */
static int enter(struct track_files *files, const struct file_key *key, struct track_file *file)
{
	const struct entry entry = { .key = *key, .file = file, .met_ns = now_ns() };
	const struct entry *before = find_entry(files, key);
	int err;

	if (before) /* its reading had not finished */
		remove_entry(files, (size_t)(before - files->all.data));
	err = vec_push(&files->all, entry);
	if (err)
		return err;
	err = hmap_put(&files->by_key, key, files->all.cnt - 1);
	if (!err && file) {
		err = vec_reserve(&files->by_id, file->id + 1);
		if (err) {
			hmap_del(&files->by_key, key);
			goto out;
		}
		while (files->by_id.cnt <= file->id)
			files->by_id.data[files->by_id.cnt++] = 0;
		files->by_id.data[file->id] = files->all.cnt;
	}
out:
	if (err)
		files->all.cnt--;
	return err;
}

static void tell_over(const struct track_files *files, struct track_file *file)
{
	if (files->on_over)
		files->on_over(files->ctx, file);
}

/* Compare its attributes with those when the file was read. */
static bool is_rewritten(const struct track_file *file)
{
	struct statx st;

	/* What the kernel has is enough: the server of a file system may not answer. */
	return file->fd >= 0 &&
	       !statx(file->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_CTIME,
		      &st) &&
	       (st.stx_size != file->facts.bytes || st.stx_ctime.tv_sec != file->facts.changed_s ||
		st.stx_ctime.tv_nsec != file->facts.changed_ns);
}

/*
 * Hide a file that nobody maps from lookups by device and inode, because another file has taken its
 * place. It stays until no stack names it any more (track_files_reclaim).
 */
static int set_aside(struct track_files *files, size_t i)
{
	struct entry *entry = &files->all.data[i];
	struct track_file *file = entry->file;
	struct file_key away = entry->key;
	int err;

	away.set_aside = file->id;
	err = hmap_put(&files->by_key, &away, i);
	if (err)
		return err;
	hmap_del(&files->by_key, &entry->key);
	entry->key = away;
	if (!file->is_retired && files->engine)
		engine_del_inode(files->engine, file->ino, file->dev);
	file->is_retired = true; /* the inode belongs to its successor */
	tell_over(files, file);
	return 0;
}

/* 1: *ret is the known file. 0: new, or due for a retry. -ECANCELED: the retry is not due yet. Negative errno. */
static int lookup(struct track_files *files, const struct file_key *key, struct track_file **ret)
{
	struct entry *entry = find_entry(files, key);
	struct track_file *file = entry ? entry->file : NULL;

	if (!entry)
		return 0;
	entry->met_ns = now_ns();
	if (entry->retry_ns)
		return entry->met_ns >= entry->retry_ns ? 0 : -ECANCELED;
	/* While a process maps it, a second set of probes in the same inode would count twice. */
	if (file && !file->user_cnt && is_rewritten(file))
		return set_aside(files, (size_t)(entry - files->all.data));
	*ret = entry->file;
	/* In use again. If BPF has no room for it, the walk asks user space, as for any new
	 * file. */
	if (entry->file && entry->file->is_retired) {
		entry->file->is_retired = false;
		add_inode(files, entry->file);
	}
	return 1;
}

/* Make a file whose content is not known yet. Takes ownership of fd, -1: none. */
static int new_file(const struct file_key *key, int fd, const struct file_facts *facts,
		    const char *path, const char *root, struct track_file **ret)
{
	struct track_file *file = calloc(1, sizeof(*file));

	if (!file) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	file->fd = fd;
	file->facts = *facts;
	file->dev = key->dev;
	file->ino = key->ino;
	file->is_vdso = key->dev == VDSO_DEV;
	file->path = strdup(path);
	file->root = strdup(root);
	if (!file->path || !file->root) {
		file_free(file);
		return -ENOMEM;
	}
	*ret = file;
	return 0;
}

/*
 * Enter the file with its content, or free it. BPF learns of the file only once it is entered:
 * until then its id can be given back at once.
 */
static int add_file(struct track_files *files, const struct file_key *key, struct track_file *file,
		    struct file_content *c, struct track_file **ret)
{
	int err;

	/* To put a probe into it, the kernel reads it, with a lock that each fork() of the machine needs. */
	if (file->facts.is_foreign)
		file_content_drop_probes(c);
	err = take_content(files, file, c);
	if (err)
		goto out;
	err = enter(files, key, file);
	if (err) {
		if (files->engine)
			engine_del_file(files->engine, file->id);
		goto out;
	}
	add_inode(files, file); /* may find no room: see lookup() */
	*ret = file;
	return 0;
out:
	file_free(file);
	return err;
}

static struct file_source source_of(const struct track_files *files, const char *path,
				    const char *root, bool is_vdso)
{
	return (struct file_source){
		.path = path,
		.root = root,
		.is_vdso = is_vdso,
		.wants_table = files->engine,
		.has_session = files->engine && engine_mode(files->engine) == ATTACH_SESSION,
	};
}

/* Read in this process, without a job. */
static int read_here(struct track_files *files, const struct file_key *key, struct track_file *file,
		     struct elf_file *ef, struct track_file **ret)
{
	const struct file_source source = source_of(files, file->path, file->root, file->is_vdso);
	struct elf_file *debug = file_content_open_debug(ef, &source);
	struct file_content c = { 0 };
	int err = file_content_read(ef, debug, &source, &files->policy->alloc, &c);

	if (err)
		file_free(file);
	else
		err = add_file(files, key, file, &c, ret);
	file_content_release(&c);
	elf_file_close(debug);
	return err;
}

/* The process's vDSO is our own: one kernel, one image (32-bit targets are refused). */
static int get_vdso(struct track_files *files, const struct file_key *key, struct track_file **ret)
{
	const Elf64_Ehdr *eh = (const void *)getauxval(AT_SYSINFO_EHDR);
	const struct file_facts none = { 0 };
	struct track_file *file = NULL;
	struct elf_file *ef = NULL;
	size_t bytes;
	int err;

	if (!eh)
		return enter(files, key, NULL);
	/* The image ends with the section headers. */
	bytes = eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
	err = elf_file_open_mem(eh, bytes, &ef);
	if (err)
		return err == -ENOMEM ? err : enter(files, key, NULL);
	err = new_file(key, -1, &none, "[vdso]", "", &file);
	if (!err)
		err = read_here(files, key, file, ef, ret);
	elf_file_close(ef);
	return err;
}

/* Takes ownership of fd. */
static int get_fd(struct track_files *files, const struct file_key *key, int fd,
		  const struct file_facts *facts, const char *path, const char *root,
		  struct track_file **ret)
{
	struct track_file *file = NULL;
	struct elf_file *ef = NULL;
	int opened = regular_file_reopen(fd);
	int err = opened < 0 ? opened : elf_file_open_fd(opened, &ef);

	if (opened >= 0)
		close(opened);
	if (err) {
		close(fd);
		return err == -ENOMEM ? err : enter(files, key, NULL);
	}
	err = new_file(key, fd, facts, path, root, &file);
	if (!err)
		err = read_here(files, key, file, ef, ret);
	elf_file_close(ef);
	return err;
}

/*
 * Read in a job. -EINPROGRESS: being read, or later when other readings are over.
 */
static int start_reading(struct track_files *files, const struct file_key *key, int fd,
			 const struct file_facts *facts, uint32_t uid, const char *path,
			 const char *root)
{
	const struct file_source source = source_of(files, path, root, false);
	struct file_reading r = { .ino = key->ino, .dev = key->dev, .uid = uid, .fd = fd };
	int err = -ENOMEM;

	r.facts = *facts;
	r.path = strdup(path);
	r.root = strdup(root);
	if (r.path && r.root)
		err = file_readings_start(&files->readings, files->policy->reader, &r, &source,
					  &files->policy->alloc);
	if (!err)
		return -EINPROGRESS;
	close(fd);
	free(r.path);
	free(r.root);
	return err == -EBUSY || err == -EAGAIN || err == -ETIMEDOUT ? -EINPROGRESS : err;
}

/* The reading did not finish: enter the file, and set the time of the retry. */
static int give_up(struct track_files *files, const struct file_key *key,
		   const struct file_reading *r)
{
	struct entry *entry = find_entry(files, key);
	uint64_t wait_ns = RETRY_FIRST_NS, now = now_ns();
	int err = 0;

	if (!entry)
		files->given_up_cnt++;
	else if (entry->retry_ns)
		wait_ns = entry->wait_ns < RETRY_LAST_NS / 2 ? entry->wait_ns * 2 : RETRY_LAST_NS;
	if (log_limit_allows(&files->partly_limit, now))
		log_warn("'%s' could not be read in time: its functions are missing in stacks; "
			 "retrying in %llu s",
			 r->path, (unsigned long long)(wait_ns / NS_PER_S));
	if (!entry)
		err = enter(files, key, NULL);
	if (err)
		return err;
	entry = find_entry(files, key);
	entry->wait_ns = wait_ns;
	entry->retry_ns = now + wait_ns;
	if (entry->retry_ns < files->next_retry_ns)
		files->next_retry_ns = entry->retry_ns;
	return 0;
}

bool track_files_may_retry(struct track_files *files)
{
	uint64_t now = now_ns(), next = UINT64_MAX;
	const struct entry *entry;

	if (now < files->next_retry_ns)
		return false;
	/* Files that are already due wait until they are met. */
	vec_each(&files->all, entry)
		if (entry->retry_ns > now && entry->retry_ns < next)
			next = entry->retry_ns;
	files->next_retry_ns = next;
	return true;
}

/* A reading is over: enter its file. */
static int finish_reading(struct track_files *files, struct file_reading *r)
{
	const struct file_key key = { .ino = r->ino, .dev = r->dev };
	const struct entry *before = find_entry(files, &key);
	struct track_file *file = NULL, *entered;
	struct file_content c = { 0 };
	int err = file_job_read(r->said.data, r->said.cnt, &c);

	if (before && !before->retry_ns) /* a launched program's, read by path meanwhile */
		err = 0;
	else if (err == -ENOMEM)
		err = 0; /* read again when it is met again */
	else if (err == -ENOEXEC)
		err = enter(files, &key, NULL);
	else if (err)
		err = give_up(files, &key, r);
	else {
		err = new_file(&key, r->fd, &r->facts, r->path, r->root, &file);
		r->fd = -1;
		if (!err)
			err = add_file(files, &key, file, &c, &entered);
	}
	file_content_release(&c);
	return err;
}

bool track_files_work(struct track_files *files, int wait_ms, int *ret_err)
{
	struct file_reading *r;
	bool is_new = false;

	*ret_err = 0;
	while ((r = file_readings_next(&files->readings, is_new ? 0 : wait_ms))) {
		int err = finish_reading(files, r);

		if (err && !*ret_err)
			*ret_err = err;
		is_new = true;
		file_reading_free(r);
	}
	return is_new;
}

static bool is_vdso(const struct proc_map *map)
{
	return !strcmp(map->path, "[vdso]");
}

static struct file_key key_of(const struct proc_map *map)
{
	if (is_vdso(map))
		return (struct file_key){ .dev = VDSO_DEV };
	return (struct file_key){ .ino = map->ino, .dev = map->dev };
}

const struct track_file *track_files_find(const struct track_files *files,
					  const struct proc_map *map)
{
	const struct file_key key = key_of(map);
	const struct entry *entry = map->ino || is_vdso(map) ? find_entry(files, &key) : NULL;

	return entry ? entry->file : NULL;
}

/* BPF takes one bias for all of the file. One that nobody maps may be another one by now: see lookup(). */
const struct track_file *track_files_find_plain(const struct track_files *files, uint32_t dev,
						uint64_t ino)
{
	const struct file_key key = { .ino = ino, .dev = dev };
	const struct entry *entry = find_entry(files, &key);
	const struct track_file *file = entry ? entry->file : NULL;

	if (!file || file->is_retired || file->exec.cnt != 1 || file->alloc || file->tags ||
	    file->sampler || file->unseen.kind != ALLOC_UNSEEN_NONE)
		return NULL;
	return file->user_cnt || !is_rewritten(file) ? file : NULL;
}

static bool is_affordable(struct read_cost *cost)
{
	uint64_t now = now_ns();

	if (!cost)
		return true;
	if (!cost->since_ns) {
		cost->since_ns = now;
		cost->steps_cap = READ_BASE_STEPS;
	}
	return cost->own_files < OWN_FILES_CAP &&
	       cost->steps <=
		       cost->steps_cap + (now - cost->since_ns) / NS_PER_S * READ_STEPS_PER_S;
}

/* Charge the first process that uses the file. */
static void pay(struct read_cost *cost, struct track_file *file)
{
	if (!cost || !file || !file->is_unpaid)
		return;
	file->is_unpaid = false;
	cost->steps += file->read_steps;
	cost->steps_cap += file->facts.disk_bytes;
}

/* Anyone who touches the file may wait for ever. */
static int leave_alone(struct track_files *files, const struct file_key *key,
		       const struct proc_map *map)
{
	if (log_limit_allows(&files->partly_limit, now_ns()))
		log_warn("'%s' is neither read nor probed: it is on a file system that another "
			 "user serves (FUSE), who could block heaptap; 'heaptap record' reads it",
			 map->path);
	return enter(files, key, NULL);
}

static bool is_being_read(const struct track_files *files, const struct file_key *key)
{
	struct file_reading **r;

	vec_each(&files->readings.list, r)
		if ((*r)->dev == key->dev && (*r)->ino == key->ino)
			return true;
	return false;
}

int track_files_get(struct track_files *files, const struct file_user *user,
		    const struct proc_map *map, struct track_file **ret)
{
	const struct file_key key = key_of(map);
	struct file_facts facts;
	char root[PROC_ROOT_BYTES];
	int fd, err;

	*ret = NULL;
	if ((!map->ino || map->path[0] != '/') && !is_vdso(map))
		return 0; /* no file, or one that only the kernel has: "anon_inode:...", "[anon_shmem:...]" */
	err = lookup(files, &key, ret);
	if (err > 0)
		pay(user->cost, *ret);
	if (err)
		return err < 0 ? err : 0;
	if (is_vdso(map))
		return get_vdso(files, &key, ret);
	if (is_being_read(files, &key))
		return -EINPROGRESS;
	if (!is_affordable(user->cost))
		return -EFBIG;
	if (files->policy->reader && !file_readings_have_room(&files->readings, user->uid))
		return -EINPROGRESS;
	fd = process_open_map(files->policy->reader, user->pid, user->tid, map, &facts);
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -EAGAIN || fd == -ETIMEDOUT)
		return fd;
	if (fd == -EREMOTE)
		return leave_alone(files, &key, map);
	if (fd == -ENOEXEC) /* no regular file */
		return 0;
	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? -EACCES : -ENOENT;
	if (user->cost) {
		user->cost->steps += READ_STEPS_PER_FILE;
		user->cost->own_files++;
	}
	proc_root_path(user->pid, root);
	if (files->policy->reader)
		return start_reading(files, &key, fd, &facts, user->uid, map->path, root);
	err = get_fd(files, &key, fd, &facts, map->path, root, ret);
	pay(user->cost, *ret);
	return err;
}

int track_files_get_path(struct track_files *files, const char *path, struct track_file **ret)
{
	struct file_key key = { 0 };
	struct file_facts facts;
	int fd = open(path, O_PATH | O_CLOEXEC), opened, err;

	*ret = NULL;
	if (fd < 0)
		return -errno;
	/* Key as in its mappings: under another key it would be probed twice. */
	opened = regular_file_reopen(fd);
	err = opened < 0 ? opened : process_mapped_inode(opened, &key.dev, &key.ino);
	if (opened >= 0)
		close(opened);
	if (!err)
		err = lookup(files, &key, ret);
	if (err == -ECANCELED) /* a program that waits to begin may retry at once */
		err = 0;
	if (!err)
		err = file_facts_read(fd, 0, &facts);
	if (err) {
		close(fd);
		return err < 0 ? err : 0;
	}
	return get_fd(files, &key, fd, &facts, path, "", ret);
}

bool track_files_is_other(const struct track_files *files, const struct proc_map *map)
{
	const struct file_key key = key_of(map);
	const struct entry *entry = map->ino ? find_entry(files, &key) : NULL;

	return entry && !entry->file && !entry->retry_ns;
}

int track_files_add_jit(struct track_files *files, struct jit_code *jit, uint32_t period,
			struct track_file **ret)
{
	struct track_file *file = calloc(1, sizeof(*file));
	struct file_key key = { .dev = JIT_DEV };
	int err = -ENOMEM;

	if (!file)
		return err;
	file->fd = -1;
	file->is_jit = true;
	file->jit = jit_code_ref(jit);
	file->jit_period = period;
	file->path = strdup("[jit]");
	file->root = strdup("");
	if (file->path && file->root)
		err = engine_add_file(files->engine, NULL, NULL, 0, 0, &file->id);
	if (err)
		goto out;
	key.ino = file->id;
	err = enter(files, &key, file);
	if (err) {
		engine_del_file(files->engine, file->id);
		goto out;
	}
	*ret = file;
	return 0;
out:
	file_free(file);
	return err;
}

const struct track_file *track_files_jit_at(const struct track_files *files, pid_t pid,
					    uint64_t addr)
{
	const struct entry *entry;
	uint64_t end_addr;

	vec_each(&files->all, entry) {
		const struct track_file *file = entry->file;

		if (file && file->is_jit && file->user_cnt && jit_code_pid(file->jit) == pid &&
		    jit_code_period(file->jit, addr, &end_addr) == file->jit_period)
			return file;
	}
	return NULL;
}

const struct track_file *track_files_by_id(const struct track_files *files, uint32_t id)
{
	if (id >= files->by_id.cnt || !files->by_id.data[id])
		return NULL;
	return files->all.data[files->by_id.data[id] - 1].file;
}

void track_files_counts(const struct track_files *files, struct track_files_counts *ret)
{
	const struct entry *entry;

	*ret = (struct track_files_counts){ .given_up_cnt = files->given_up_cnt,
					    .partly_read_cnt = files->partly_read_cnt };
	vec_each(&files->all, entry)
		ret->unread_cnt += entry->retry_ns != 0;
}

size_t track_files_cnt(const struct track_files *files)
{
	return files->all.cnt;
}

const struct track_file *track_files_at(const struct track_files *files, size_t i)
{
	return files->all.data[i].file;
}

bool track_files_reclaim(struct track_files *files, const struct reclaim_files *used)
{
	uint64_t now = now_ns();
	bool has_retired = false;

	for (size_t i = files->all.cnt; i-- > 0;) { /* backwards: see remove_entry() */
		const struct entry *entry = &files->all.data[i];
		struct track_file *file = entry->file;

		if (!file) {
			if (now - entry->met_ns > NOT_ELF_NS)
				remove_entry(files, i);
			continue;
		}
		if (file->user_cnt || file->is_vdso || reclaim_files_have(used, file->id))
			continue;
		if (!file->is_retired) {
			if (!file->is_jit)
				engine_del_inode(files->engine, file->ino, file->dev);
			file->is_retired = has_retired = true;
			continue;
		}
		tell_over(files, file);
		engine_del_file(files->engine, file->id);
		remove_entry(files, i);
	}
	return has_retired;
}

const struct track_file *track_files_most_unproven(const struct track_files *files,
						   uint64_t *ret_cnt)
{
	const struct track_file *most = NULL;
	const struct entry *entry;

	*ret_cnt = 0;
	vec_each(&files->all, entry) {
		const struct track_file *file = entry->file;
		uint64_t cnt = 0;

		if (files->engine && file && file->alloc && file->alloc->inner.cnt)
			cnt = engine_unproven_cnt(files->engine, file->id);
		if (cnt > *ret_cnt) {
			*ret_cnt = cnt;
			most = file;
		}
	}
	return most;
}

int track_file_bias(const struct track_file *file, uint64_t start_addr, uint64_t off,
		    uint64_t *ret_bias)
{
	const struct track_segment *s;

	if (file->is_vdso) {
		*ret_bias =
			start_addr -
			(file->exec.cnt ? file->exec.data[0].vaddr - file->exec.data[0].off : 0);
		return 0;
	}
	/* A mapping starts at the segment's page; the segment may begin inside that page. */
	vec_each(&file->exec, s) {
		if (off + 4096 > s->off && off < s->off + s->bytes) {
			*ret_bias = start_addr - off - (s->vaddr - s->off);
			return 0;
		}
	}
	return -ENOENT;
}
