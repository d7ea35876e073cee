/* SPDX-License-Identifier: MIT */
/*
 * intern.bpf.h - turns the tags of a sample into numbers: a slot for its scope, an id for its context.
 *
 * A new scope is interned from the root down: a slot is published only after its parent, so a charge always
 * finds the whole chain. Interning copies the names, which is slow (some microseconds) and happens once per
 * scope.
 */
#ifndef HT_INTERN_BPF_H
#define HT_INTERN_BPF_H

/* include/heaptap/scope.h, "ABI": the node table. */
#define SCOPE_DESC_CHUNKS 128
#define SCOPE_CHUNK_SHIFT 12
#define SCOPE_CHUNKS_CAP 64

struct scope_node {
	__u32 parent;
	__u16 kind;
	__u16 flags;
	__u64 name_addr;
	__u64 value_addr;
	__u16 name_len;
	__u16 value_len;
	__u32 hash;
};
_Static_assert(sizeof(struct scope_node) == SCOPE_NODE_BYTES, "as in the ABI");

/* Not in a global function's argument: 6.1's verifier takes no map key from there. */
static __always_inline void scope_key_of(struct ht_scope_key *key, const struct ht_walk *w,
					 __u32 source, __u32 node)
{
	key->tgid = w->tgid;
	key->generation = w->generation;
	key->source = source;
	key->node = node;
}

__u32 scope_last; /* last slot that was taken from the fresh ones */

/* Take an unused slot; 0: there is none. */
static __always_inline __u32 slot_take(void)
{
	__u32 slot = 0;

	if (!bpf_map_pop_elem(&free_slots, &slot))
		return slot;
	if (*(volatile __u32 *)&scope_last >= HT_SCOPES_CAP - 1)
		return 0;
	slot = __sync_fetch_and_add(&scope_last, 1) + 1;
	return slot < HT_SCOPES_CAP ? slot : 0;
}

/* Publish w->scope under a key, as a child of parent_slot. Returns the slot, 0: no room. */
__noinline __u32 scope_make(struct ht_walk *arg, __u32 source, __u32 node, __u32 parent_slot)
{
	struct ht_walk *w = arg ? walk_self(arg) : NULL;
	struct ht_scope_sums *sums, *parent;
	struct ht_scope_key key;
	struct ht_scope *known;
	__u32 slot;

	if (!w || !share_take(w->tgid, w->generation, HT_SHARED_SCOPES))
		return 0;
	slot = slot_take();
	sums = slot ? bpf_map_lookup_elem(&scope_sums, &slot) : NULL;
	if (!sums) {
		share_give(w->tgid, w->generation, HT_SHARED_SCOPES);
		return 0;
	}
	sums->parent_slot = parent_slot;
	sums->task_slot = 0;
	parent = bpf_map_lookup_elem(&scope_sums, &parent_slot);
	if (w->scope.kind == HT_NODE_TASK)
		sums->task_slot = slot;
	else if (parent && parent_slot)
		sums->task_slot = parent->task_slot;
	w->scope.slot = slot;
	w->scope.parent_slot = parent_slot;
	scope_key_of(&key, w, source, node);
	if (!bpf_map_update_elem(&scopes, &key, &w->scope, BPF_NOEXIST))
		return slot;
	/* Another thread was faster, or the map is full. */
	share_give(w->tgid, w->generation, HT_SHARED_SCOPES);
	bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	known = bpf_map_lookup_elem(&scopes, &key);
	return known ? known->slot : 0;
}

/* The slot of a scope without a node: no tag, (unreadable), (other). */
__noinline __u32 scope_special(struct ht_walk *w, __u32 source)
{
	struct ht_scope_key key;
	struct ht_scope *known;

	if (!w)
		return 0;
	scope_key_of(&key, w, source, 0);
	known = bpf_map_lookup_elem(&scopes, &key);
	if (known)
		return known->slot;
	w->scope.kind = w->scope.flags = 0;
	w->scope.name_len = w->scope.value_len = 0;
	return scope_make(w, source, 0, 0);
}

static __noinline int node_read(struct scope_node *ret, __u64 desc_addr, __u32 node)
{
	__u32 chunk = node >> SCOPE_CHUNK_SHIFT, idx = node & ((1 << SCOPE_CHUNK_SHIFT) - 1);
	__u64 chunk_addr;

	if (!ret || chunk >= SCOPE_CHUNKS_CAP ||
	    read_user_u64(&chunk_addr, desc_addr + SCOPE_DESC_CHUNKS + 8 * chunk) || !chunk_addr)
		return -1;
	if (bpf_probe_read_user(ret, sizeof(*ret),
				(const void *)(chunk_addr + idx * SCOPE_NODE_BYTES)))
		return -1;
	/* Parents come before their children: a loop is impossible. */
	return ret->parent < node && ret->kind >= HT_NODE_TAG && ret->kind <= HT_NODE_OTHER ? 0 :
											      -1;
}

/* Copy a node into w->scope. */
__noinline int node_copy(struct ht_walk *w, __u32 node)
{
	struct scope_node n;
	__u32 name_len, value_len;

	if (!w || node_read(&n, w->tag.desc_addr, node))
		return -1;
	name_len = n.name_len;
	value_len = n.value_len;
	if (name_len >= HT_NAME_BYTES_CAP || value_len >= HT_NAME_BYTES_CAP)
		return -1;
	w->scope.kind = n.kind;
	w->scope.flags = n.flags;
	w->scope.name_len = name_len;
	w->scope.value_len = value_len;
	if (name_len && bpf_probe_read_user(w->scope.name, name_len & (HT_NAME_BYTES_CAP - 1),
					    (const void *)n.name_addr))
		return -1;
	if (value_len && bpf_probe_read_user(w->scope.value, value_len & (HT_NAME_BYTES_CAP - 1),
					     (const void *)n.value_addr))
		return -1;
	return 0;
}

/* Return the slot of a node of w->tag when known; else 0, with the node's parent in w->parent. -1: unreadable. */
__noinline int scope_step(struct ht_walk *w, __u32 node)
{
	struct ht_scope_key key;
	struct ht_scope *known;
	struct scope_node n;

	if (!w)
		return -1;
	scope_key_of(&key, w, w->tag.source, node);
	known = bpf_map_lookup_elem(&scopes, &key);
	if (known)
		return known->slot;
	if (node_read(&n, w->tag.desc_addr, node))
		return -1;
	w->parent = n.parent;
	return 0;
}

/* Make the scope of a node. Returns its slot; 0: no room for it; -1: unreadable. */
__noinline int scope_child(struct ht_walk *w, __u32 node, __u32 parent_slot)
{
	struct ht_tags *sources;

	if (!w || node_copy(w, node))
		return -1;
	sources = tags_find(w->tgid);
	if (!sources || sources->scope_cnt >= HT_SCOPES_PER_PROCESS_CAP)
		return 0;
	__sync_fetch_and_add(&sources->scope_cnt, 1);
	return scope_make(w, w->tag.source, node, parent_slot);
}

/*
 * Climb from w->tag.node to a known scope, or to the top, and store the path in w->path. Returns the number of
 * nodes in it; -1: unreadable. *ret_slot: the known scope, 0: none.
 */
__noinline int scope_climb(struct ht_walk *w, __u32 *ret_slot)
{
	__u32 node;
	int slot;

	if (!w || !ret_slot)
		return -1;
	*ret_slot = 0;
	node = w->tag.node;
	for (int i = 0; i < HT_SCOPE_DEPTH_CAP; i++) {
		if (!node)
			return i;
		slot = scope_step(w, node);
		if (slot < 0)
			return -1;
		if (slot) {
			*ret_slot = slot;
			return i;
		}
		w->path[i] = node;
		node = w->parent;
	}
	return node ? -1 : HT_SCOPE_DEPTH_CAP;
}

/* Make the scopes of the first cnt nodes of w->path below slot. Returns as scope_child(). */
__noinline int scope_descend(struct ht_walk *w, __u32 cnt, int slot)
{
	if (!w)
		return -1;
	for (__u32 i = 0; i < HT_SCOPE_DEPTH_CAP; i++) {
		if (i >= cnt)
			break;
		slot = scope_child(w, w->path[(cnt - 1 - i) & (HT_SCOPE_DEPTH_CAP - 1)], slot);
		if (slot <= 0)
			break;
	}
	return slot;
}

/* Return the slot of w->tag. Its source is changed when its scope cannot be had. */
__noinline __u32 scope_intern(struct ht_walk *w)
{
	__u32 known = 0;
	int slot;

	if (!w)
		return 0;
	if (!w->tag.node)
		return scope_special(w, w->tag.source);
	slot = scope_climb(w, &known);
	if (slot >= 0)
		slot = scope_descend(w, slot, known);
	if (slot > 0)
		return slot;
	stat_inc(slot ? HT_STAT_TAG_UNREADABLE : HT_STAT_SCOPES_FULL);
	w->tag.source = slot ? HT_SOURCE_UNREADABLE : HT_SOURCE_OTHER;
	w->tag.node = 0;
	w->tag.instance = 0;
	return scope_special(w, w->tag.source);
}

__u32 context_last; /* last id that was taken from the fresh ones */

static __always_inline __u32 context_take(void)
{
	__u32 id = 0;

	if (!bpf_map_pop_elem(&free_contexts, &id))
		return id;
	return __sync_fetch_and_add(&context_last, 1) + 1;
}

static __always_inline void context_key_of(struct ht_context *key, const struct ht_walk *w)
{
	key->tgid = w->tgid;
	key->generation = w->generation;
	key->source = w->tag.source;
	key->node = w->tag.node;
	key->labels_id = w->tag.labels_id;
}

static __always_inline bool context_has_tag(const struct ht_walk *w)
{
	return w->tag.node || w->tag.labels_id;
}

/* May the process have one more context with a tag? */
static __always_inline bool context_allow_tag(const struct ht_walk *w)
{
	struct ht_tags *sources = tags_find(w->tgid);

	return sources &&
	       __sync_fetch_and_add(&sources->context_cnt, 1) < HT_CONTEXTS_PER_PROCESS_CAP;
}

/* ... and one more without a tag, for a further thread name? */
static __always_inline bool context_allow_name(const struct ht_walk *w)
{
	struct ht_target *t = target_find(w->tgid);

	return t && __sync_fetch_and_add(&t->name_cnt, 1) < HT_THREAD_NAMES_CAP;
}

/* Enter a new context. */
static __noinline int context_make(struct ht_walk *w, struct ht_context *key,
				   struct ht_context_value *ret)
{
	const char other[HT_COMM_BYTES] = HT_THREAD_OTHER;
	struct ht_context_value *known;
	__u32 id;
	int err;

	if (!w || !key || !ret)
		return -1;
	if (context_has_tag(w) && !context_allow_tag(w)) {
		stat_inc(HT_STAT_SCOPES_FULL);
		__builtin_memset(&w->tag, 0, sizeof(w->tag));
		w->tag.source = HT_SOURCE_OTHER;
	}
	ret->scope_slot = scope_intern(w);
	context_key_of(key, w); /* the tag may have changed above */
	known = bpf_map_lookup_elem(&contexts, key);
	if (!known && !context_has_tag(w) && !context_allow_name(w)) {
		stat_inc(HT_STAT_THREADS_OTHER);
		__builtin_memcpy(key->comm, other, sizeof(key->comm));
		known = bpf_map_lookup_elem(&contexts, key);
	}
	if (known) {
		*ret = *known;
		return 0;
	}
	ret->id = 0;
	if (!share_take(w->tgid, w->generation, HT_SHARED_CONTEXTS))
		return 0;
	ret->id = context_take();
	err = bpf_map_update_elem(&contexts, key, ret, BPF_NOEXIST);
	if (!err)
		return 0;
	share_give(w->tgid, w->generation, HT_SHARED_CONTEXTS);
	/* Another thread came first, or the map is full. */
	id = ret->id;
	bpf_map_push_elem(&free_contexts, &id, BPF_ANY);
	known = bpf_map_lookup_elem(&contexts, key);
	if (known) {
		*ret = *known;
		return 0;
	}
	stat_inc(HT_STAT_CONTEXTS_FULL);
	ret->id = 0;
	return 0;
}

/* Store the context of w->tag and of the current thread's name in l. Id 0: none could be given. Global: the
 * verifier looks at it once. */
__noinline int context_intern(struct ht_walk *w, struct ht_live *l)
{
	struct ht_context_value *known, fresh = {};
	struct ht_context key = {};

	if (!w || !l)
		return 0;
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	context_key_of(&key, w);
	known = bpf_map_lookup_elem(&contexts, &key);
	if (known) {
		l->context_id = known->id;
		l->scope_slot = known->scope_slot;
		return 0;
	}
	context_make(w, &key, &fresh);
	l->context_id = fresh.id;
	l->scope_slot = fresh.scope_slot;
	l->instance = w->tag.instance;
	return 0;
}

#endif
