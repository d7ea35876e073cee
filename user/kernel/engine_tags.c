/* SPDX-License-Identifier: MIT */
/* engine_tags.c - tag sources in, scopes and instances out. See engine.h and abi.h, "Tags". */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "kernel/engine_priv.h"

/* Results of ht_add_tag_source. */
enum { ADDED, STALE, FULL };

int engine_add_tag_source(struct engine *e, pid_t tgid, uint32_t generation,
			  const struct ht_tag_source *source)
{
	uint64_t args[9] = { (uint32_t)tgid,
			     generation,
			     source->kind,
			     source->tls_mode,
			     (uint64_t)source->tls_off,
			     source->tls_module,
			     source->desc_addr,
			     source->dtv_shift,
			     source->flags };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(bpf_program__fd(e->skel->progs.ht_add_tag_source), &opts))
		return -errno;
	switch (opts.retval) {
	case ADDED:
		return 0;
	case STALE:
		return -ESTALE;
	default:
		return -ENOSPC;
	}
}

void engine_del_tags(struct engine *e, pid_t tgid)
{
	const struct ht_tag_source none = { .kind = HT_TAG_FREE };

	engine_add_tag_source(e, tgid, HT_GENERATION_NONE, &none);
}

struct scope_walk {
	engine_scope_fn fn;
	void *ctx;
};

static int on_scope(void *ctx, const void *key, const void *value)
{
	const struct scope_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

int engine_each_scope(struct engine *e, engine_scope_fn fn, void *ctx)
{
	struct scope_walk sw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.scopes), sizeof(struct ht_scope_key),
			      sizeof(struct ht_scope), on_scope, &sw };

	return map_walk_all(&w);
}

int engine_get_scope_sums(struct engine *e, uint32_t slot, struct ht_scope_sums *ret)
{
	return bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.scope_sums), &slot, ret) ? -errno : 0;
}

struct instance_walk {
	engine_instance_fn fn;
	void *ctx;
};

static int on_instance(void *ctx, const void *key, const void *value)
{
	const struct instance_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

static struct map_walk walk_of_instances(struct engine *e, struct instance_walk *iw)
{
	return (struct map_walk){ bpf_map__fd(e->skel->maps.instances),
				  sizeof(struct ht_instance_key), sizeof(struct ht_instance),
				  on_instance, iw };
}

int engine_each_instance(struct engine *e, engine_instance_fn fn, void *ctx)
{
	struct instance_walk iw = { fn, ctx };
	const struct map_walk w = walk_of_instances(e, &iw);

	return map_walk_all(&w);
}

struct engine_walk {
	struct instance_walk instances;
	struct map_walk walk;
	struct map_cursor cursor;
};

int engine_walk_instances(struct engine *e, engine_instance_fn fn, void *ctx,
			  struct engine_walk **ret)
{
	struct engine_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->instances = (struct instance_walk){ fn, ctx };
	w->walk = walk_of_instances(e, &w->instances);
	*ret = w;
	return 0;
}

int engine_walk_step(struct engine_walk *w, bool *ret_at_end)
{
	int err = map_cursor_next(&w->cursor, &w->walk);

	*ret_at_end = w->cursor.at_end;
	return err;
}

void engine_walk_free(struct engine_walk *w)
{
	if (!w)
		return;
	map_cursor_release(&w->cursor);
	free(w);
}

int engine_del_instance(struct engine *e, const struct ht_instance_key *k)
{
	/* In BPF, because that also updates the share of the process. */
	uint64_t args[3] = { HT_SWEEP_INSTANCE, k->task_slot, k->instance };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(bpf_program__fd(e->skel->progs.ht_sweep), &opts))
		return -errno;
	return opts.retval == 1 ? 0 : -ENOENT;
}

int engine_get_labels(struct engine *e, uint64_t labels_id, struct ht_labels *ret)
{
	if (bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.label_sets), &labels_id, ret))
		return -errno;
	if (ret->byte_cnt > HT_LABEL_BYTES_CAP)
		ret->byte_cnt = HT_LABEL_BYTES_CAP;
	return 0;
}
