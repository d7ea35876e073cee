/* SPDX-License-Identifier: MIT */
/*
 * tags.bpf.h - reads the current thread's tags: what it says that the allocation is for.
 *
 * The reader runs on the thread that wrote the tag, inside its call of the allocator: no locks. All data from
 * the target may be wrong or hostile, and may change while it is read (its threads share the node table): every
 * read is bounded, ids only fall on the way up a path, and a tag that cannot be read is "(unreadable)",
 * counted, and still recorded.
 *
 * Functions called in loops are global: the verifier looks at a global function once, at others once for each
 * round, which took half a second of every start.
 */
#ifndef HT_TAGS_BPF_H
#define HT_TAGS_BPF_H

/* include/heaptap/scope.h, "ABI": the parts of the descriptor that are read here. */
struct scope_desc {
	__u16 semaphore;
	__u16 major;
	__u16 minor;
	__u16 size_bytes;
	__u64 magic; /* "HEAPTAP\0" */
	__u16 record_bytes;
	__u16 node_bytes;
	__u8 tls_mode;
	__u8 pointer_bytes;
	__u16 flags;
	__s64 tls_off;
	__u64 dtv_module, dtv_off;
	__u32 node_cap;
	__u32 node_cnt;
};
_Static_assert(sizeof(struct scope_desc) == 56, "the head of the descriptor");
#define SCOPE_MAGIC 0x0050415450414548ULL
#define SCOPE_MAJOR 1
#define SCOPE_RECORD_BYTES 32
#define SCOPE_NODE_BYTES 32
#define SCOPE_DESC_REGISTRY 88

struct scope_record {
	__u64 scope;
	__u64 instance;
	__u64 kv;
	__u64 reserved;
};
#define SCOPE_PAUSED (1ULL << 32)

struct scope_registry_slot {
	__u32 tid;
	__u32 reserved;
	__u64 record_addr;
};
#define REGISTRY_TRIES 16

#define TAGS_CLAIMED 0xffffffffU /* not a pid: the entry is being made */

/* Number of tag sources. With 0 a sample costs no more than this look. */
__u32 tag_source_cnt;

/* The tags of a process; NULL: it has none. */
static __always_inline struct ht_tags *tags_find(__u32 tgid)
{
	for (__u32 i = 0; i < HT_TAGS_TRIES; i++) {
		__u32 slot = (tgid + i) & (HT_TAGS_CNT - 1);
		struct ht_tags *entry = bpf_map_lookup_elem(&tags, &slot);

		if (entry && *(volatile __u32 *)&entry->tgid == tgid)
			return entry;
	}
	return NULL;
}

static __always_inline void tags_clear(struct ht_tags *entry)
{
	for (__u32 i = 0; i < HT_TAG_SOURCES_CAP; i++)
		entry->source[i].kind = HT_TAG_FREE;
	entry->scope_cnt = entry->context_cnt = 0;
}

/* Make an entry for a process that has none. NULL: no room near its place. */
static __always_inline struct ht_tags *tags_make(__u32 tgid, __u32 generation)
{
	for (__u32 i = 0; i < HT_TAGS_TRIES; i++) {
		__u32 slot = (tgid + i) & (HT_TAGS_CNT - 1);
		struct ht_tags *entry = bpf_map_lookup_elem(&tags, &slot);

		if (!entry || __sync_val_compare_and_swap(&entry->tgid, 0, TAGS_CLAIMED))
			continue;
		tags_clear(entry);
		entry->generation = generation;
		__sync_val_compare_and_swap(&entry->tgid, TAGS_CLAIMED, tgid);
		return entry;
	}
	return NULL;
}

static __always_inline void tags_drop(__u32 tgid)
{
	struct ht_tags *entry = tags_find(tgid);

	if (entry)
		__sync_val_compare_and_swap(&entry->tgid, tgid, 0);
}

static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#elif defined(__TARGET_ARCH_arm64)
	return task->thread.uw.tp_value;
#else
#error "thread pointer of this architecture"
#endif
}

/* The pointer to the dynamic vector is in slot 1 of the thread control block (x86-64), in slot 0 (arm64). */
#if defined(__TARGET_ARCH_x86)
#define TCB_DTV_OFF 8
#else
#define TCB_DTV_OFF 0
#endif

static __always_inline __u64 dtv_addr(__u64 module, __u64 off, __u32 shift)
{
	__u64 dtv, block;

	if (module > 4096 || read_user_u64(&dtv, thread_pointer() + TCB_DTV_OFF) ||
	    read_user_u64(&block, dtv + (module << (shift & 7))))
		return 0;
	/* glibc: ~0 = not yet allocated for this thread */
	return block && ~block ? block + off : 0;
}

/*
 * Return what gettid() returns in this thread: its id in its innermost pid namespace;
 * bpf_get_current_pid_tgid() gives the id in the outermost one. 0: it cannot be read. Reads numbers, not
 * through typed pointers: there the verifier allows no unknown index.
 */
static __always_inline __u32 own_tid(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level, tid;
	__u64 addr;

	if (!pid || bpf_core_read(&level, sizeof(level), &pid->level))
		return 0;
	addr = (__u64)pid + bpf_core_field_offset(struct pid, numbers) +
	       (__u64)level * bpf_core_type_size(struct upid) +
	       bpf_core_field_offset(struct upid, nr);
	return bpf_probe_read_kernel(&tid, sizeof(tid), (const void *)addr) ? 0 : tid;
}

static __noinline __u64 registry_addr(__u64 registry)
{
	__u32 tid = own_tid(), head[2], pos;
	struct scope_registry_slot s;

	if (!tid || bpf_probe_read_user(head, sizeof(head), (const void *)registry) ||
	    head[0] != 1 || !head[1] || head[1] > 24)
		return 0;
	pos = (tid * 0x9e3779b1u) >> (32 - head[1]);
	for (int i = 0; i < REGISTRY_TRIES; i++) {
		__u64 addr = registry + 16 + sizeof(s) * (pos & ((1u << head[1]) - 1));

		if (bpf_probe_read_user(&s, sizeof(s), (const void *)addr) || !s.tid)
			return 0;
		if (s.tid == tid)
			return s.record_addr;
		pos++;
	}
	return 0;
}

/* Read the constant parts of the descriptor. 0: it is not ready, or no longer mapped. */
__noinline int source_load(struct ht_tag_source *s)
{
	struct scope_desc d;

	if (!s || bpf_probe_read_user(&d, sizeof(d), (const void *)s->desc_addr) ||
	    d.magic != SCOPE_MAGIC || d.major != SCOPE_MAJOR ||
	    d.record_bytes != SCOPE_RECORD_BYTES || d.node_bytes != SCOPE_NODE_BYTES ||
	    d.pointer_bytes != 8 || !d.tls_mode || d.tls_mode > HT_TLS_REGISTRY)
		return 0;
	/* A library that was unloaded and loaded anew begins with an empty table: what we know of its nodes is
	 * no longer valid. */
	if (d.node_cnt <= s->node_max) {
		s->node_max = 0;
		__sync_fetch_and_add(&s->epoch, 1);
	}
	s->flags = d.flags & HT_TAG_PAUSES_ALL;
	s->tls_off = d.tls_mode == HT_TLS_DTV ? d.dtv_off : (__u64)d.tls_off;
	s->tls_module = d.dtv_module;
	s->tls_mode = d.tls_mode;
	return 1;
}

/* Address of the thread's record; 0: it has none, or the descriptor is not ready. */
__noinline __u64 record_addr(struct ht_tag_source *s)
{
	__u64 registry;

	if (!s || (s->tls_mode == HT_TLS_NOT_READY && !source_load(s)))
		return 0;
	switch (s->tls_mode) {
	case HT_TLS_STATIC:
		return thread_pointer() + s->tls_off;
	case HT_TLS_DTV:
		/* An announced source has no shift until user space has seen it: use glibc's. */
		return dtv_addr(s->tls_module, s->tls_off, s->dtv_shift ? s->dtv_shift : 4);
	case HT_TLS_REGISTRY:
		if (read_user_u64(&registry, s->desc_addr + SCOPE_DESC_REGISTRY))
			return 0;
		return registry_addr(registry);
	default:
		return 0;
	}
}

/* Read the pointer in a foreign thread-local variable; 0: none. */
static __always_inline __u64 foreign_pointer(const struct ht_tag_source *s)
{
	__u64 at = s->tls_mode == HT_TLS_DTV ? dtv_addr(s->tls_module, s->tls_off, s->dtv_shift) :
					       thread_pointer() + s->tls_off,
	      addr = 0;

	if (!at || read_user_u64(&addr, at))
		return 0;
	return addr;
}

/*
 * Read one native source into w->tag, when that is still empty. false: paused. The place of the record and the
 * flags are remembered, because a read of user memory costs as much as all the rest: a program that changes the
 * flags announces the descriptor again.
 */
static __always_inline bool scope_read(struct ht_walk *w, __u32 idx, struct ht_tag_source *s)
{
	struct scope_record rec;
	__u64 addr;

	if (s->tls_mode == HT_TLS_STATIC)
		addr = thread_pointer() + s->tls_off;
	else
		addr = record_addr(s);
	if (s->flags & HT_TAG_PAUSES_ALL)
		return false;
	if (!addr)
		return true;
	if (bpf_probe_read_user(&rec, sizeof(rec), (const void *)addr)) {
		stat_inc(HT_STAT_TAG_UNREADABLE);
		if (!w->tag.source)
			w->tag.source = HT_SOURCE_UNREADABLE;
		return true;
	}
	if (rec.scope & SCOPE_PAUSED)
		return false;
	if ((__u32)rec.scope && !w->tag.node) {
		w->tag.source = HT_SOURCE(idx, s->epoch);
		w->tag.node = rec.scope;
		w->tag.instance = rec.instance;
		w->tag.desc_addr = s->desc_addr;
		if (w->tag.node > s->node_max)
			s->node_max = w->tag.node;
	}
	if (rec.kv && !w->tag.labels_id)
		w->tag.labels_id = labels_otel(w, rec.kv, HT_TAG_SCOPE, 0);
	return true;
}

/* Read the thread's tags into w->tag. 0: the thread is paused, nothing is to be recorded. */
__noinline int tags_read(struct ht_walk *w)
{
	struct ht_tags *sources;

	if (!w)
		return 1;
	__builtin_memset(&w->tag, 0, sizeof(w->tag));
	if (!tag_source_cnt)
		return 1;
	sources = tags_find(w->tgid);
	if (!sources || sources->generation != w->generation)
		return 1;
	for (__u32 i = 0; i < HT_TAG_SOURCES_CAP; i++) {
		struct ht_tag_source *s = &sources->source[i];

		switch (*(volatile const __u32 *)&s->kind) {
		case HT_TAG_FREE:
			return 1;
		case HT_TAG_SCOPE:
			if (!scope_read(w, i, s))
				return 0;
			break;
		case HT_TAG_OTEL:
			if (!w->tag.labels_id)
				w->tag.labels_id =
					labels_otel(w, foreign_pointer(s), HT_TAG_OTEL, s->flags);
			break;
		case HT_TAG_CUSTOM:
			if (!w->tag.labels_id)
				w->tag.labels_id = labels_custom(w, foreign_pointer(s));
			break;
		}
	}
	return 1;
}

/*
 * Add a tag source of a process. is_here: the source announces itself, on a thread of the process, whose memory
 * can be read.
 */
static __noinline int tags_add(__u32 tgid, __u32 generation, const struct ht_tag_source *from,
			       bool is_here)
{
	struct ht_tags *sources;

	if (!from)
		return -1;
	sources = tags_find(tgid);
	if (!sources)
		sources = tags_make(tgid, generation);
	if (!sources || sources->generation != generation) {
		stat_inc(HT_STAT_TAG_SOURCES_FULL);
		return -1;
	}
	for (__u32 i = 0; i < HT_TAG_SOURCES_CAP; i++) {
		struct ht_tag_source *s = &sources->source[i];

		if (s->kind == from->kind && s->desc_addr == from->desc_addr &&
		    (s->kind == HT_TAG_SCOPE ||
		     (s->tls_off == from->tls_off && s->tls_module == from->tls_module))) {
			/* The flags of a descriptor are only taken from the descriptor itself: what user space
			 * has read may be outdated. */
			if (is_here)
				source_load(s);
			else if (s->kind != HT_TAG_SCOPE)
				s->flags = from->flags;
			return 0;
		}
		if (__sync_val_compare_and_swap(&s->kind, HT_TAG_FREE, HT_TAG_CLAIMED) !=
		    HT_TAG_FREE)
			continue;
		s->tls_mode = from->tls_mode;
		s->tls_off = from->tls_off;
		s->tls_module = from->tls_module;
		s->desc_addr = from->desc_addr;
		s->dtv_shift = from->dtv_shift;
		s->flags = from->flags;
		s->node_max = 0;
		if (is_here)
			source_load(s);
		__sync_val_compare_and_swap(&s->kind, HT_TAG_CLAIMED, from->kind);
		__sync_fetch_and_add(&tag_source_cnt, 1);
		return 0;
	}
	stat_inc(HT_STAT_TAG_SOURCES_FULL);
	return -1;
}

/* A forked child has its parent's descriptors at the same addresses. */
static __always_inline void tags_inherit(__u32 parent, __u32 child, __u32 generation)
{
	struct ht_tags *from = tags_find(parent), *entry;

	if (!from)
		return;
	entry = tags_make(child, generation);
	if (!entry) {
		stat_inc(HT_STAT_TAG_SOURCES_FULL);
		return;
	}
	for (__u32 i = 0; i < HT_TAG_SOURCES_CAP; i++)
		entry->source[i] = from->source[i];
}

/* heaptap:tls_v1: the descriptor is ready, the argument is its address. */
static __always_inline void tags_ready(struct pt_regs *ctx)
{
	struct ht_tag_source s = { .kind = HT_TAG_SCOPE, .desc_addr = PT_REGS_PARM1(ctx) };
	struct ht_target *t;
	__u32 tgid;

	t = target_of_event(&tgid);
	if (t)
		tags_add(tgid, t->generation, &s, true);
}

/* heaptap:task_exit(node, instance, descriptor) */
static __always_inline void tags_task_exit(struct pt_regs *ctx)
{
	__u64 desc_addr = PT_REGS_PARM3(ctx);
	struct ht_scope_key key = {};
	struct ht_scope *scope;
	struct ht_tags *sources;
	struct ht_target *t;

	t = target_of_event(&key.tgid);
	sources = t ? tags_find(key.tgid) : NULL;
	if (!sources || sources->generation != t->generation)
		return;
	key.generation = t->generation;
	key.node = PT_REGS_PARM1(ctx);
	for (__u32 i = 0; i < HT_TAG_SOURCES_CAP; i++)
		if (sources->source[i].kind == HT_TAG_SCOPE &&
		    sources->source[i].desc_addr == desc_addr)
			key.source = HT_SOURCE(i, sources->source[i].epoch);
	scope = key.source ? bpf_map_lookup_elem(&scopes, &key) : NULL;
	if (scope)
		instance_exit(scope->slot, PT_REGS_PARM2(ctx));
}

#endif
