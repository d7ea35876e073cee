/* SPDX-License-Identifier: MIT */
/*
 * late_files.c - see tracker_priv.h.
 *
 * The kernel reports each mapping with its time and inode. Where a report is missing (it was lost, or is about the file
 * below an overlay, which has another inode), the file was mapped after the last reading that knew all files. What was
 * there at the first reading is no late file: nothing from before is in the numbers anyway.
 */
#include "track/tracker_priv.h"

#include "base/clock.h"
#include "track/file.h"

/* Beyond this number the oldest is overwritten: a program that starts maps some hundred libraries. */
#define NEWS_CAP 256

static struct track_news *find_news(struct tracked_process *p, uint64_t ino)
{
	struct track_news *n;

	vec_each(&p->news, n)
		if (n->ino == ino)
			return n;
	return NULL;
}

static void set_news(struct tracked_process *p, uint64_t ino, uint64_t time_ns)
{
	struct track_news *known = find_news(p, ino), fresh = { ino, time_ns };

	if (known)
		known->time_ns = time_ns;
	else if (p->news.cnt < NEWS_CAP)
		(void)vec_push(&p->news, fresh); /* without it the last reading counts */
	else
		p->news.data[p->news_next++ % NEWS_CAP] = fresh;
}

void late_files_note_mapped(struct tracked_process *p, uint64_t ino, uint64_t time_ns)
{
	const struct track_news *known = find_news(p, ino);

	/* Of several mappings of a file the first counts. A report may come after the reading that found the file. */
	if (time_ns >= p->followed_ns && time_ns >= p->whole_maps_ns &&
	    !(known && known->time_ns <= time_ns))
		set_news(p, ino, time_ns > p->recorded_ns ? time_ns : p->recorded_ns);
}

static void note(struct track_instance *inst, const struct track_file *file, uint64_t late_ns)
{
	inst->late_file_cnt++;
	if (late_ns <= inst->late_file_ns)
		return;
	inst->late_file_ns = late_ns;
	snprintf(inst->late_file, sizeof(inst->late_file), "%s", file->path);
}

static void say(const struct tracked_process *p, const struct track_file *file, uint64_t late_ns)
{
	struct track_instance one = { 0 };
	char words[LATE_FILES_WORDS];

	note(&one, file, late_ns);
	log_warn("PID %d: %s", p->pid, late_files_words(&one, words));
}

/* For how long before it was probed was it mapped? 0: it was not, or that is known. */
static uint64_t take_late_ns(struct tracked_process *p, const struct track_file *file,
			     uint64_t seen_ns)
{
	const struct track_news *n = find_news(p, file->ino);
	uint64_t since_ns = n ? n->time_ns : p->whole_ns;

	if (!since_ns || since_ns >= seen_ns)
		return 0;
	set_news(p, file->ino, seen_ns);
	return seen_ns - since_ns;
}

void late_files_find(struct tracked_process *p, const struct probes *probes,
		     struct track_instance *inst)
{
	struct track_file **file;

	vec_each(&p->mapped, file) {
		uint64_t seen_ns = (*file)->alloc ? probes_seen_ns(probes, *file, p->pid) : 0;
		uint64_t late_ns = seen_ns ? take_late_ns(p, *file, seen_ns) : 0;

		if (!late_ns || !inst)
			continue;
		note(inst, *file, late_ns);
		if (!(*file)->is_late_logged)
			say(p, *file, late_ns);
		(*file)->is_late_logged = true;
	}
	if (p->is_waiting || p->has_busy_files || p->has_unread_files || p->has_gone_files ||
	    p->tap_due_ns)
		return;
	p->news.cnt = 0;
	p->whole_ns = now_ns();
	p->whole_maps_ns = p->maps_ns;
}

void late_files_note_never(struct track_instance *inst, const struct track_file *file)
{
	if (inst->late_file_ns != UINT64_MAX || strcmp(inst->late_file, file->path) != 0)
		note(inst, file, UINT64_MAX);
}
