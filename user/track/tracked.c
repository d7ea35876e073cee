/* SPDX-License-Identifier: MIT */
/*
 * tracked.c - what is known of one tracked process: reads its mappings, has new files compiled (files.h), and gives
 * the mapping set to the kernel (see tracker_priv.h).
 */
#include "track/tracker_priv.h"

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/engine.h"
#include "kernel/reclaim.h"
#include "proc/events.h"
#include "proc/jit_entry.h"
#include "proc/process.h"
#include "proc/runtime_kind.h"
#include "tap/tap.h"
#include "track/jit_code.h"

/* Limits of waiting for new files. A server does not let one process hold it up... */
#define FILES_PATIENT_NS (60 * NS_PER_S)
#define FILES_WAIT_NS (300 * NS_PER_MS)
#define FILES_WAIT_PER_S 0.2 /* ... and spends at most this part of its time on waiting for all */
/* What an image is does not change; its user, and which of its threads lives, seldom do. */
#define IMAGE_INTERVAL_NS NS_PER_S
/* A program that loads and unloads its plugins all the time is not read each time. */
#define PLAIN_WAIT_NS (250 * NS_PER_MS)

struct file_list {
	VEC(struct track_file *) file;
};

static void forget_leftovers(struct tracked_process *p)
{
	struct leftovers *l;

	vec_each(&p->leftovers, l)
		vec_release(&l->sites);
	vec_release(&p->leftovers);
}

/*
 * Memory with code made at run time.
 *
 * Such code is in executable memory without a file, or of a file that is not ELF (memfd,
 * /dev/zero). Compilers that keep memory either writable or executable make it non-executable while
 * they write, and threads may be inside it meanwhile. So an area counts until it is unmapped, or
 * something else is mapped there.
 */

/* A tap is our own code: it has no names to look up, and no stack begins in it. */
static bool is_tap(const char *path)
{
	return !strncmp(path, TAP_PATH, sizeof(TAP_PATH) - 1);
}

/* Can this mapping hold such code, if it is executable? */
static bool jit_can_be_in(const struct proc_map *m, const struct track_files *files)
{
	static const char *const kernels[] = { "[vdso]", "[vvar", "[vsyscall]", "[uprobes]" };

	if (is_tap(m->path))
		return false;
	if (m->ino)
		return track_files_is_other(files, m);
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (!strncmp(m->path, kernels[i], strlen(kernels[i])))
			return false;
	return !(m->start_addr >> 63);
}

static int add_area(struct jit_areas *to, uint64_t start_addr, uint64_t end_addr)
{
	const struct jit_area area = { start_addr, end_addr };
	size_t cnt = to->area.cnt;

	if (cnt && to->area.data[cnt - 1].end_addr == start_addr) {
		to->area.data[cnt - 1].end_addr = end_addr;
		return 0;
	}
	return vec_push(&to->area, area);
}

/* Add the parts of a mapping that were code before. *next: the first area that may be in it, or behind it. */
static int add_known_areas(struct jit_areas *to, const struct jit_areas *before, size_t *next,
			   const struct proc_map *m)
{
	int err = 0;

	while (*next < before->area.cnt && before->area.data[*next].end_addr <= m->start_addr)
		++*next;
	for (size_t i = *next; i < before->area.cnt && !err; i++) {
		const struct jit_area *area = &before->area.data[i];
		uint64_t start = area->start_addr, end = area->end_addr;

		if (start >= m->end_addr)
			break;
		start = start > m->start_addr ? start : m->start_addr;
		end = end < m->end_addr ? end : m->end_addr;
		err = add_area(to, start, end);
	}
	return err;
}

static void jit_areas_release(struct jit_areas *a)
{
	vec_release(&a->area);
}

/* Update from all mappings of the process, after its files are known. 0 or -ENOMEM. */
static int jit_areas_update(struct jit_areas *a, const struct proc_maps *maps,
			    const struct track_files *files)
{
	struct jit_areas now = { 0 };
	const struct proc_map *m;
	size_t next = 0;
	int err = 0;

	vec_each(&maps->maps, m) {
		if (!jit_can_be_in(m, files))
			continue;
		err = m->is_exec ? add_area(&now, m->start_addr, m->end_addr) :
				   add_known_areas(&now, a, &next, m);
		if (err)
			break;
	}
	if (err) {
		jit_areas_release(&now);
		return err;
	}
	jit_areas_release(a);
	*a = now;
	return 0;
}

static void forget_jit(struct tracked_process *p)
{
	jit_areas_release(&p->jit);
	if (p->jit_code)
		jit_code_end(p->jit_code);
	jit_code_unref(p->jit_code);
	jit_code_unref(p->jit_parent);
	p->jit_code = p->jit_parent = NULL;
}

static void release_process(struct tracked_process *p)
{
	vec_release(&p->tags.desc_addrs);
	vec_release(&p->tags.otel);
	forget_jit(p);
	vec_release(&p->mapped);
	vec_release(&p->set);
	vec_release(&p->news);
	forget_leftovers(p);
}

void tracked_release(struct tracker *t)
{
	struct tracked_process *p;

	vec_each(&t->list, p)
		release_process(p);
	vec_release(&t->list);
	hmap_release(&t->idx);
}

struct tracked_process *tracked_find(const struct tracker *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *idx = hmap_get(&t->idx, &key);

	return idx ? &t->list.data[*idx] : NULL;
}

int tracked_add(struct tracker *t, pid_t pid, uint32_t generation, struct tracked_process **ret)
{
	struct tracked_process fresh = { .pid = pid, .live_tid = pid, .generation = generation };
	uint32_t key = (uint32_t)pid;
	int err = tracked_find(t, pid) ? -EEXIST : 0;

	if (!err)
		err = vec_reserve(&t->list, t->list.cnt + 1);
	if (!err)
		err = hmap_put(&t->idx, &key, t->list.cnt);
	if (err)
		return err;
	t->list.data[t->list.cnt] = fresh;
	t->added_cnt++;
	*ret = &t->list.data[t->list.cnt++];
	return 0;
}

/* Make these files, and no others, the ones that the process maps. */
static void hold_files(struct tracker *t, struct tracked_process *p, struct file_list *mapped)
{
	struct track_file **file;

	vec_each(&mapped->file, file)
		(*file)->user_cnt++;
	vec_each(&p->mapped, file)
		if (!--(*file)->user_cnt)
			reclaim_ask(t->reclaim);
	vec_release(&p->mapped);
	p->mapped.data = mapped->file.data;
	p->mapped.cnt = mapped->file.cnt;
	p->mapped.cap = mapped->file.cap;
	memset(mapped, 0, sizeof(*mapped));
}

void tracked_delete(struct tracker *t, struct tracked_process *p)
{
	struct tracked_process *last = &t->list.data[t->list.cnt - 1];
	uint32_t key = (uint32_t)p->pid;
	struct file_list none = { 0 };

	engine_del_mappings(t->engine, p->pid);
	engine_del_tags(t->engine, p->pid);
	hold_files(t, p, &none);
	release_process(p);
	hmap_del(&t->idx, &key);
	if (p != last) {
		*p = *last;
		key = (uint32_t)p->pid;
		*hmap_get(&t->idx, &key) = (uint64_t)(p - t->list.data);
	}
	t->list.cnt--;
	t->deleted_cnt++;
}

bool tracked_may_wait(const struct tracker *t, struct tracked_process *p,
		      const struct process_events_map *map)
{
	const struct track_file *file = track_files_find_plain(t->files, map->dev, map->ino);
	struct ht_mapping fresh = { map->addr, map->addr + map->bytes, 0, 0, 0 };
	const struct ht_mapping *m;
	uint64_t bias;

	if (is_tap(map->path))
		return true;
	if (!file || track_file_bias(file, map->addr, map->off, &bias))
		return false;
	fresh.bias = bias;
	fresh.file_id = file->id;
	vec_each(&p->set, m) {
		if (!memcmp(m, &fresh, sizeof(fresh)))
			return true;
		if (m->start_addr < fresh.end_addr && fresh.start_addr < m->end_addr)
			return false;
	}
	if (!t->policy->finds_mappings || vec_push(&p->set, fresh))
		return false;
	if (!p->plain_due_ns)
		p->plain_due_ns = now_ns() + PLAIN_WAIT_NS;
	return true;
}

bool tracked_is_current(const struct tracker *t, const struct tracked_process *p)
{
	struct ht_target target;

	return !engine_get_target(t->engine, p->pid, &target) && target.generation == p->generation;
}

/*
 * Add what /proc says of it, but overwrite nothing: in the middle of an exec /proc has the new
 * image's names while the generation is still the old one's.
 */
static int instance_describe(struct track_instance *inst, const struct process_info *info)
{
	char *exe;

	if (!inst->exe[0]) {
		exe = strdup(info->exe);
		if (!exe)
			return -ENOMEM;
		free(inst->exe);
		inst->exe = exe;
		memcpy(inst->called, info->called, sizeof(inst->called));
	}
	if (!inst->comm[0])
		memcpy(inst->comm, info->comm, sizeof(inst->comm));
	if (!inst->rss_begin_bytes) {
		inst->rss_begin_bytes = info->rss_bytes;
		inst->file_begin_bytes = info->file_bytes;
	}
	return 0;
}

/* Add what /proc said while this image was there, unless a later image has begun. */
static int note_instance(struct tracker *t, const struct tracked_process *p,
			 const struct process_info *info)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);

	if (!inst)
		return -ENOMEM;
	return tracked_is_current(t, p) ? instance_describe(inst, info) : 0;
}

static void note_failure(struct tracker *t, int err)
{
	t->failed_cnt++;
	if (!t->failed_err)
		t->failed_err = err;
}

static void note_costly(struct tracker *t, struct tracked_process *p)
{
	if (p->has_costly_files)
		return;
	p->has_costly_files = true;
	note_failure(t, -EFBIG);
	log_warn("PID %d maps many files: stacks through the last ones are truncated for a while",
		 p->pid);
}

static bool has_mapped(const struct tracked_process *p, const struct track_file *file)
{
	struct track_file *const *one;

	vec_each(&p->mapped, one)
		if (*one == file)
			return true;
	return false;
}

/* Each mapping of a file is searched, but not when mappings are read again: by then our own probes are there. */
static int find_leftovers(const struct tracker *t, struct tracked_process *p,
			  const struct proc_map *map, const struct track_file *file)
{
	struct leftovers found = { 0 };
	int err = leftovers_find(t->policy->reader, p->live_tid, map, file, &found);

	if (!err && found.sites.cnt)
		err = vec_push(&p->leftovers, found);
	if (err || !found.sites.cnt)
		vec_release(&found.sites);
	return err;
}

struct mapping_list {
	VEC(struct ht_mapping) map;
};

static void keep_set(struct tracked_process *p, struct mapping_list *set)
{
	vec_release(&p->set);
	p->set.data = set->map.data;
	p->set.cnt = set->map.cnt;
	p->set.cap = set->map.cap;
	memset(set, 0, sizeof(*set));
}

static int compare_mappings(const void *a, const void *b)
{
	const struct ht_mapping *x = a, *y = b;

	return x->start_addr < y->start_addr ? -1 : x->start_addr > y->start_addr;
}

/* Find or make the file that stands for the code of a period, and add it to `mapped`. */
static int get_jit_file(struct tracker *t, const struct tracked_process *p, uint32_t period,
			struct file_list *mapped, struct track_file **ret)
{
	struct track_file **file, *found = NULL;
	int err = 0;

	vec_each(&mapped->file, file)
		if ((*file)->jit == p->jit_code && (*file)->jit_period == period) {
			*ret = *file;
			return 0;
		}
	vec_each(&p->mapped, file)
		if ((*file)->jit == p->jit_code && (*file)->jit_period == period)
			found = *file;
	if (!found)
		err = track_files_add_jit(t->files, p->jit_code, period, &found);
	*ret = found;
	return err ? err : vec_push(&mapped->file, found);
}

/* Add an area in pieces of one period each. For pieces without room the walk asks the kernel. */
static int add_jit_area(struct tracker *t, const struct tracked_process *p, struct jit_area area,
			struct mapping_list *set, struct file_list *mapped)
{
	int err = 0;

	while (!err && area.start_addr < area.end_addr && set->map.cnt < HT_MAPPINGS_CAP) {
		uint64_t end_addr;
		uint32_t period = jit_code_period(p->jit_code, area.start_addr, &end_addr);
		struct ht_mapping hm = { .start_addr = area.start_addr, .flags = HT_MAPPING_JIT };
		struct track_file *file;

		hm.end_addr = end_addr < area.end_addr ? end_addr : area.end_addr;
		err = get_jit_file(t, p, period, mapped, &file);
		if (err)
			break;
		hm.file_id = file->id;
		err = vec_push(&set->map, hm);
		area.start_addr = hm.end_addr;
	}
	return err;
}

/* Programs map their dump executable so that profilers find it. */
static void find_dump(const struct tracker *t, struct tracked_process *p,
		      const struct proc_maps *maps)
{
	const struct proc_map *m;

	vec_each(&maps->maps, m) {
		struct file_facts facts;
		int path_fd, fd;

		if (!m->is_exec || !jit_is_dump_path(m->path) || jit_code_has_dump(p->jit_code))
			continue;
		path_fd = process_open_map(t->policy->reader, p->pid, p->live_tid, m, &facts);
		if (path_fd < 0)
			continue;
		/* it is read again and again, and another user could let this wait */
		fd = facts.is_foreign ? -EREMOTE : regular_file_reopen(path_fd);
		close(path_fd);
		if (fd >= 0)
			jit_code_add_dump(p->jit_code, fd);
	}
}

/* Add code made at run time. *ret_file_id: file for code that is met before it is known here. */
static int add_jit(struct tracker *t, struct tracked_process *p, uint32_t generation,
		   const struct proc_maps *maps, struct mapping_list *set, struct file_list *mapped,
		   uint32_t *ret_file_id)
{
	const struct jit_area *area;
	struct process_info info;
	struct track_file *first;
	int err;

	if (generation != p->generation) /* another image's */
		forget_jit(p);
	err = jit_areas_update(&p->jit, maps, t->files);
	if (!err && p->jit.area.cnt && !p->jit_code) {
		err = process_info_read(t->policy->reader, p->pid, &info);
		if (!err)
			err = jit_code_new(t->policy->reader, &info, p->jit_parent, &p->jit_code);
	}
	if (err || !p->jit_code)
		return err;
	find_dump(t, p, maps);
	err = get_jit_file(t, p, 0, mapped, &first);
	if (err)
		return err;
	*ret_file_id = first->id;
	vec_each(&p->jit.area, area) {
		err = add_jit_area(t, p, *area, set, mapped);
		if (err)
			return err;
	}
	if (set->map.cnt)
		qsort(set->map.data, set->map.cnt, sizeof(*set->map.data), compare_mappings);
	return 0;
}

static bool is_code(const struct proc_map *m)
{
	/* [vsyscall] is in the kernel's half: nothing calls malloc from there, and the walk's
	 * search compares signed numbers. */
	return m->is_exec && !(m->start_addr >> 63);
}

static uint32_t own_files(const struct tracked_process *p)
{
	struct track_file **file;
	uint32_t cnt = 0;

	vec_each(&p->mapped, file)
		cnt += (*file)->user_cnt == 1;
	return cnt;
}

/* How long to wait for the files of a process now. */
static uint64_t wait_ns(struct tracker *t, const struct tracked_process *p, uint64_t now)
{
	uint64_t left_ns;

	if (p->held_until_ns)
		return p->held_until_ns > now ? p->held_until_ns - now : 0;
	if (t->policy->is_patient)
		return FILES_PATIENT_NS;
	t->waited_ns -= fmin(t->waited_ns, (double)(now - t->waited_since_ns) * FILES_WAIT_PER_S);
	t->waited_since_ns = now;
	left_ns = t->waited_ns < FILES_WAIT_NS ? FILES_WAIT_NS - (uint64_t)t->waited_ns : 0;
	return left_ns;
}

/* Is it an allocator that allocates unseen until it is probed? Then the other files can wait. */
static bool is_urgent(const struct tracked_process *p, const struct track_file *file)
{
	return p->recorded_ns && !p->held_until_ns && file && file->alloc && !has_mapped(p, file);
}

/*
 * Let jobs read the new files, several at once, and wait as long as allowed. Missing files come
 * later, and the process is then refreshed: is_waiting.
 */
static int fetch_files(struct tracker *t, struct tracked_process *p, const struct file_user *user,
		       const struct proc_maps *maps)
{
	uint64_t begin_ns = now_ns(), until_ns = begin_ns + wait_ns(t, p, begin_ns), now;
	const struct proc_map *m;
	struct track_file *file;
	int err = 0;

	do {
		bool is_hurried = false;

		p->is_waiting = false;
		vec_each(&maps->maps, m) {
			if (!is_code(m))
				continue;
			if (track_files_get(t->files, user, m, &file) == -EINPROGRESS)
				p->is_waiting = true;
			is_hurried |= is_urgent(p, file);
		}
		now = now_ns();
		if (!p->is_waiting || is_hurried || now >= until_ns)
			break;
		if (track_files_work(t->files, (int)((until_ns - now) / NS_PER_MS) + 1, &err))
			t->has_new_files = true;
	} while (!err);
	t->waited_ns += (double)(now_ns() - begin_ns);
	if (err && err != -ENOMEM)
		note_failure(t, err);
	return err == -ENOMEM ? err : 0;
}

/* Part of the process does not answer: go on with the rest, and retry that part later. */
static int forgive_silence(struct tracked_process *p, int err)
{
	if (err != -ETIMEDOUT)
		return err;
	p->has_busy_files = true;
	return 0;
}

static void add_closed(struct tracked_process *p, const struct proc_map *map, int err)
{
	if (p->closed.cnt++)
		return;
	snprintf(p->closed.path, sizeof(p->closed.path), "%s", map->path);
	p->closed.err = err;
}

/* Mappings of the process -> mapping set in the engine; the files -> p->mapped. */
static int read_mappings(struct tracker *t, struct tracked_process *p, uint32_t generation)
{
	struct mapping_list set = { 0 };
	struct file_list mapped = { 0 };
	struct proc_maps maps = { 0 };
	const struct file_user user = { p->pid, p->live_tid, p->uid, &p->read_cost };
	const struct proc_map *m;
	uint32_t jit_file_id = 0, maps_cnt = 0;
	int err;

	p->maps_ns = now_ns();
	err = proc_maps_read(t->policy->reader, p->pid, p->live_tid, &maps);
	p->has_busy_files = err == -ETIMEDOUT;
	p->has_unread_files = p->has_gone_files = false;
	p->closed.cnt = 0;
	if (err)
		return forgive_silence(p, err);
	p->read_cost.own_files = own_files(p);
	err = fetch_files(t, p, &user, &maps);
	if (err)
		goto out;
	t->read_cnt++;
	process_tags_begin(&p->tags);
	vec_each(&maps.maps, m) {
		struct track_file *file = NULL;
		struct ht_mapping hm = { m->start_addr, m->end_addr, 0, 0, 0 };
		uint64_t bias;

		if (!is_code(m))
			continue;
		err = track_files_get(t->files, &user, m, &file);
		if (err == -ENOMEM)
			goto out;
		if (err == -EFBIG)
			note_costly(t, p);
		else if (err == -EAGAIN || err == -ETIMEDOUT)
			p->has_busy_files = true;
		else if (err == -EINPROGRESS)
			p->is_waiting = true;
		else if (err == -ECANCELED)
			p->has_unread_files = true;
		else if (err == -ENOENT)
			p->has_gone_files = true;
		else if (err &&
			 err != -EACCES) /* no more tables or descriptors: go on without the file */
			note_failure(t, err);
		if (err == -EACCES || err == -EAGAIN || err == -ETIMEDOUT)
			add_closed(p, m, err);
		if (file && !track_file_bias(file, m->start_addr, m->off, &bias)) {
			hm.bias = bias;
			hm.file_id = file->id;
		}
		if (!file && jit_can_be_in(m, t->files))
			continue; /* see add_jit() */
		err = vec_push(&set.map, hm);
		if (!err && file && p->may_have_leftovers && !has_mapped(p, file))
			err = forgive_silence(p, find_leftovers(t, p, m, file));
		maps_cnt += file && file->alloc;
		if (!err && file && file->listed_in != t->read_cnt) {
			file->listed_in = t->read_cnt;
			err = vec_push(&mapped.file, file);
		}
		if (!err && file && file->tags && hm.file_id)
			err = forgive_silence(p, process_tags_add_file(t, p, generation, file,
								       hm.bias, &maps));
		if (err)
			goto out;
	}
	err = add_jit(t, p, generation, &maps, &set, &mapped, &jit_file_id);
	if (err == -ENOMEM || err == -ESRCH)
		goto out;
	if (err) /* no more tables: stacks end in such code */
		note_failure(t, err);
	err = engine_put_mappings(t->engine, p->pid, generation, jit_file_id, set.map.data,
				  set.map.cnt);
	keep_set(p, err ? &(struct mapping_list){ 0 } : &set);
	if (err && err != -ENOMEM) { /* the walk asks the kernel then */
		note_failure(t, err);
		err = 0;
	}
	if (!err) {
		hold_files(t, p, &mapped);
		p->allocator_maps_cnt = maps_cnt;
		err = forgive_silence(p, process_tags_read_keys(t, p, generation, &maps));
	}
out:
	vec_release(&set.map);
	vec_release(&mapped.file);
	proc_maps_release(&maps);
	return err;
}

/* Note the allocators that are not seen. What they allocated stays unseen, so nothing is taken back. */
static void note_unseen(const struct tracked_process *p, struct track_instance *inst)
{
	char words[ALLOC_UNSEEN_WORDS];
	struct track_file **file;
	uint32_t cnt = 0;

	vec_each(&p->mapped, file) {
		struct track_file *one = *file;

		if (one->unseen.kind == ALLOC_UNSEEN_NONE)
			continue;
		cnt++;
		inst->has_unseen_frees |= one->unseen.kind == ALLOC_UNSEEN_FREES;
		alloc_unseen_words(&one->unseen, words);
		if (!inst->unseen[0])
			snprintf(inst->unseen, sizeof(inst->unseen), "%.180s %s", one->path, words);
		if (!one->is_unseen_logged)
			log_warn("PID %d: '%s' %s", p->pid, one->path, words);
		one->is_unseen_logged = true;
	}
	if (cnt > inst->unseen_cnt)
		inst->unseen_cnt = cnt;
}

static const char *closed_words(int err)
{
	return err == -EACCES ? "cannot be opened, even by root (FUSE without allow_other?)" :
	       err == -EAGAIN ? "is in exclusive use (F_SETLEASE)" :
				"cannot be read";
}

static void note_closed(struct tracker *t, const struct tracked_process *p,
			struct track_instance *inst)
{
	if (!p->closed.cnt || inst->unseen[0])
		return;
	snprintf(inst->unseen, sizeof(inst->unseen),
		 "%s %s: an allocator in it is not seen, and its functions have no names",
		 p->closed.path, closed_words(p->closed.err));
	inst->unseen_cnt = 1;
	inst->is_unseen_closed = true;
	if (!t->is_closed_logged)
		log_warn("PID %d: %s", p->pid, inst->unseen);
	t->is_closed_logged = true;
}

/* The environment is read only of a process that has a runtime, and once. */
static void note_own_heap(const struct tracker *t, const struct tracked_process *p,
			  struct track_instance *inst)
{
	enum runtime_kind kind = RUNTIME_NONE;
	struct track_file *const *file;
	struct runtime_words words;
	char *text = NULL;
	size_t bytes = 0;

	vec_each(&p->mapped, file)
		if (!kind)
			kind = (*file)->is_go ? RUNTIME_GO : runtime_of_file((*file)->path);
	if (!kind || kind == inst->runtime)
		return;
	inst->runtime = kind;
	if (process_read_environ(t->policy->reader, p->live_tid, &text, &bytes))
		text = NULL;
	runtime_words_heap(kind, text, text ? bytes : 0, &words);
	free(text);
	if (words.what)
		snprintf(inst->own_heap, sizeof(inst->own_heap), "%s; %s", words.what,
			 words.advice);
}

static void note_what_is_unseen(struct tracker *t, const struct tracked_process *p)
{
	struct track_instance *inst = instances_find(&t->instances, p->pid, p->generation);

	if (!inst)
		return;
	if (inst->is_unseen_closed) { /* perhaps it could be opened now */
		inst->unseen[0] = '\0';
		inst->unseen_cnt = 0;
		inst->is_unseen_closed = false;
	}
	note_unseen(p, inst);
	note_closed(t, p, inst);
	note_own_heap(t, p, inst);
}

/* false: it cannot be read. */
static bool read_image(const struct tracker *t, struct tracked_process *p, uint32_t generation,
		       struct process_info *ret)
{
	if (process_image_read(t->policy->reader, p->pid, ret))
		return false;
	p->image_generation = generation;
	p->image_ns = now_ns();
	if (ret->live_tid)
		p->live_tid = ret->live_tid;
	p->uid = ret->uid;
	p->is_emulated = process_is_emulated(ret);
	return true;
}

static bool is_image_known(const struct tracked_process *p, uint32_t generation)
{
	return p->image_ns && p->image_generation == generation &&
	       now_ns() < p->image_ns + IMAGE_INTERVAL_NS;
}

static int bring_up_to_date(struct tracker *t, struct tracked_process *p)
{
	struct track_file **file;
	struct ht_target target;
	struct process_info info;
	bool is_known, has_info;
	int err;

	p->is_dirty = false;
	p->plain_due_ns = 0;
	p->refreshed_ns = now_ns();
	err = engine_get_target(t->engine, p->pid, &target);
	if (err)
		return err;
	is_known = is_image_known(p, target.generation);
	has_info = !is_known && read_image(t, p, target.generation, &info);
	/* If an exec happens in between, the set is the old image's. It does not count then: the
	 * walk asks the kernel, and the exec's event leads to another refresh. */
	err = read_mappings(t, p, target.generation);
	if (err == -ESRCH && is_known) { /* perhaps only the thread that was read has ended */
		has_info = read_image(t, p, target.generation, &info);
		err = has_info ? read_mappings(t, p, target.generation) : err;
	}
	if (err)
		return err;
	p->may_have_leftovers &= p->is_waiting || p->has_busy_files;
	p->generation = target.generation;
	p->has_allocator = false;
	vec_each(&p->mapped, file)
		p->has_allocator |= (*file)->alloc != NULL;
	err = has_info ? note_instance(t, p, &info) : 0;
	note_what_is_unseen(t, p);
	return err;
}

int tracked_refresh(struct tracker *t, struct tracked_process *p)
{
	int err = bring_up_to_date(t, p);
	const struct leftovers *l;

	vec_each(&p->leftovers, l)
		probes_clean_leftovers(t->probes, l, p->pid, p->live_tid);
	forget_leftovers(p);
	return err;
}
