/* SPDX-License-Identifier: MIT */
/* instances.c - see instances.h. */
#include "track/instances.h"

#include "base/clock.h"
#include "base/units.h"
#include "profile/tag_labels.h"

/* A program has mapped its libraries by then. On a busy machine its first read may come later than that: so a library is
 * from dlopen() only if a read after this time did not have it. */
#define EXEC_SETTLES_NS NS_PER_S

struct instance_key {
	uint32_t pid;
	uint32_t generation;
};

static void release_instance(struct track_instance *inst)
{
	free(inst->exe);
	instance_set_keys(inst, NULL);
}

void instances_init(struct instances *is)
{
	memset(is, 0, sizeof(*is));
	hmap_init(&is->idx, sizeof(struct instance_key));
	hmap_init(&is->lives, sizeof(struct instance_key));
}

void instances_release(struct instances *is)
{
	struct track_instance *inst;

	vec_each(&is->list, inst)
		release_instance(inst);
	vec_release(&is->list);
	hmap_release(&is->idx);
	hmap_release(&is->lives);
}

static struct instance_key life_of(pid_t pid, uint32_t generation)
{
	return (struct instance_key){ (uint32_t)pid, generation / HT_GENERATION_STEP };
}

static int note_newest(struct instances *is, pid_t pid, uint32_t generation)
{
	const struct instance_key life = life_of(pid, generation);
	const uint64_t *newest = hmap_get(&is->lives, &life);

	return newest && *newest >= generation ? 0 : hmap_put(&is->lives, &life, generation);
}

bool instances_is_replaced(const struct instances *is, pid_t pid, uint32_t generation)
{
	const struct instance_key life = life_of(pid, generation);
	const uint64_t *newest = hmap_get(&is->lives, &life);

	return newest && *newest > generation;
}

struct track_instance *instances_find(const struct instances *is, pid_t pid, uint32_t generation)
{
	const struct instance_key key = { (uint32_t)pid, generation };
	const uint64_t *idx = hmap_get(&is->idx, &key);

	return idx ? &is->list.data[*idx] : NULL;
}

struct track_instance *instances_get(struct instances *is, pid_t pid, uint32_t generation)
{
	const struct instance_key key = { (uint32_t)pid, generation };
	struct track_instance fresh = { .pid = pid, .generation = generation };
	struct track_instance *inst = instances_find(is, pid, generation);

	if (inst)
		return inst;
	fresh.exe = strdup("");
	if (!fresh.exe || vec_reserve(&is->list, is->list.cnt + 1) ||
	    note_newest(is, pid, generation) || hmap_put(&is->idx, &key, is->list.cnt)) {
		free(fresh.exe);
		return NULL;
	}
	is->list.data[is->list.cnt] = fresh;
	return &is->list.data[is->list.cnt++];
}

void instance_set_keys(struct track_instance *inst, struct tag_keys *keys)
{
	if (inst->tag_keys)
		tag_keys_release(inst->tag_keys);
	free(inst->tag_keys);
	inst->tag_keys = keys;
}

const char *late_files_words(const struct track_instance *inst, char buf[LATE_FILES_WORDS])
{
	char text[UNITS_BUF], more[48] = "";

	if (inst->late_file_cnt > 1)
		snprintf(more, sizeof(more), " (%u more files were late)", inst->late_file_cnt - 1);
	if (inst->late_file_ns == UINT64_MAX)
		snprintf(buf, LATE_FILES_WORDS,
			 "'%s' was loaded after the tap was put in, and cannot be tapped: its "
			 "allocations are not seen%s",
			 inst->late_file, more);
	else
		snprintf(buf, LATE_FILES_WORDS,
			 "'%s' was probed %s after it was mapped: earlier blocks are not "
			 "included%s",
			 inst->late_file, format_duration(inst->late_file_ns, text, sizeof(text)),
			 more);
	return buf;
}

void instances_note_begin(struct instances *is, pid_t pid, uint32_t generation,
			  const struct ht_event *event)
{
	struct track_instance *inst = instances_get(is, pid, generation);

	if (!inst)
		return;
	memcpy(inst->comm, event->comm, sizeof(inst->comm));
	if (event->kind != HT_EVENT_EXEC)
		return;
	inst->exec_ns = event->time_ns;
	if (!event->other) /* else it is held, and was held then */
		inst->unseen_until_ns = inst->late_ns;
}

void instances_note_read(struct instances *is, pid_t pid, uint32_t generation, uint64_t read_ns,
			 bool is_whole)
{
	struct track_instance *inst = instances_find(is, pid, generation);

	if (!inst)
		return;
	inst->was_read |= is_whole;
	inst->is_settled |= is_whole && inst->exec_ns && read_ns >= inst->exec_ns + EXEC_SETTLES_NS;
}

void instances_note_loader(struct instances *is, pid_t pid, uint32_t generation)
{
	struct track_instance *inst = instances_find(is, pid, generation);

	if (inst)
		inst->has_loader = true;
}

void instances_note_loaded(struct instances *is, pid_t pid, uint32_t generation, bool is_held)
{
	struct track_instance *inst = instances_find(is, pid, generation);

	if (!inst || !inst->may_be_in_time)
		return;
	inst->may_be_in_time = false;
	if (is_held)
		inst->unseen_until_ns = 0;
}

void instances_note_late(struct instances *is, pid_t pid, uint32_t generation, bool was_held)
{
	struct track_instance *inst = instances_find(is, pid, generation);

	if (inst && !inst->exec_ns)
		inst->late_ns = now_ns();
	if (!inst || !inst->exec_ns || (inst->is_settled && !was_held))
		return;
	inst->may_be_in_time = inst->has_loader && (!inst->unseen_until_ns || inst->may_be_in_time);
	inst->unseen_until_ns = now_ns();
}

void instances_note_end(struct instances *is, pid_t pid, uint32_t generation, uint64_t end_ns)
{
	struct track_instance *inst = instances_find(is, pid, generation);

	if (inst && inst->exec_ns && !inst->was_read)
		inst->unseen_until_ns = end_ns;
}

void instances_note_over(struct instances *is, instances_over_fn is_over, void *ctx)
{
	struct track_instance *inst;

	vec_each(&is->list, inst)
		inst->is_leaving |= is_over(ctx, inst->pid, inst->generation);
}

int instances_forget_noted(struct instances *is)
{
	size_t kept = 0;
	int err = 0;

	hmap_release(&is->idx);
	hmap_release(&is->lives);
	hmap_init(&is->idx, sizeof(struct instance_key));
	hmap_init(&is->lives, sizeof(struct instance_key));
	for (size_t i = 0; i < is->list.cnt; i++) {
		struct track_instance *inst = &is->list.data[i];
		const struct instance_key key = { (uint32_t)inst->pid, inst->generation };

		if (inst->is_leaving || (err = note_newest(is, inst->pid, inst->generation)) ||
		    (err = hmap_put(&is->idx, &key, kept))) {
			release_instance(inst);
			continue;
		}
		is->list.data[kept++] = *inst;
	}
	is->list.cnt = kept;
	return err;
}
