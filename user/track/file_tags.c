/* SPDX-License-Identifier: MIT */
/* file_tags.c - see file_tags.h. */
#include "track/file_tags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/usdt_notes.h"

#define PROVIDER "heaptap"

/* Where the probes have their arguments; bpf/tags.bpf.h reads them like those of a function. */
#if defined(__x86_64__)
#define TAG_READY_ARGS "8@%rdi"
#define TASK_EXIT_ARGS "8@%rdi 8@%rsi 8@%rdx"
#else
#define TAG_READY_ARGS "8@x0"
#define TASK_EXIT_ARGS "8@x0 8@x1 8@x2"
#endif

void file_tags_free(struct file_tags *tags)
{
	if (!tags)
		return;
	vec_release(&tags->readies);
	vec_release(&tags->task_exits);
	free(tags);
}

/* lld's ThinLTO keeps the note of every unit, all for the same probe. */
static bool has_site(const struct attach_site *sites, size_t cnt, uint64_t off)
{
	for (size_t i = 0; i < cnt; i++)
		if (sites[i].off == off)
			return true;
	return false;
}

static int add_note(struct file_tags *tags, const struct usdt_note *note)
{
	struct attach_site site = { .off = note->location_off,
				    .semaphore_off = note->semaphore_off };

	if (!note->semaphore_vaddr)
		return 0;
	if (!strcmp(note->name, "tls_v1") && !strcmp(note->args, TAG_READY_ARGS) &&
	    !has_site(tags->readies.data, tags->readies.cnt, site.off))
		return vec_push(&tags->readies, site);
	if (!strcmp(note->name, "task_exit") && !strcmp(note->args, TASK_EXIT_ARGS) &&
	    !has_site(tags->task_exits.data, tags->task_exits.cnt, site.off))
		return vec_push(&tags->task_exits, site);
	return 0;
}

static int scan_probes(struct elf_file *ef, struct file_tags *tags)
{
	struct usdt_note *notes;
	size_t cnt;
	int err = usdt_notes_find(ef, PROVIDER, &notes, &cnt);

	if (err)
		return err == -ENOENT ? 0 : err;
	for (size_t i = 0; i < cnt && !err; i++)
		err = add_note(tags, &notes[i]);
	free(notes);
	return err;
}

int file_tags_scan(struct elf_file *ef, struct file_tags **ret)
{
	struct file_tags *tags = calloc(1, sizeof(*tags));
	int err;

	*ret = NULL;
	if (!tags)
		return -ENOMEM;
	err = tag_file_scan(ef, &tags->where);
	if (!err)
		err = scan_probes(ef, tags);
	if (!err) {
		*ret = tags;
		return 0;
	}
	file_tags_free(tags);
	return err == -ENOMEM ? err : 0;
}
