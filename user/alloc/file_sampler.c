/* SPDX-License-Identifier: MIT */
/* file_sampler.c - see file_sampler.h. */
#include "alloc/file_sampler.h"

#include <elf.h>

#include "elf/elf_file.h"
#include "elf/usdt_notes.h"

/* In order of preference. */
static const char *const providers[] = { "otel_memory", "ddheap" };

#define ALLOC_ARGS 3
#define FREE_ARGS 1

void file_sampler_free(struct file_sampler *s)
{
	if (!s)
		return;
	vec_release(&s->sites);
	free(s);
}

/* Has the site been added? lld's ThinLTO leaves notes twice. */
static bool has_site(const struct file_sampler *s, uint64_t off)
{
	const struct sampler_site *site;

	vec_each(&s->sites, site)
		if (site->off == off)
			return true;
	return false;
}

static int add_site(struct file_sampler *s, const struct usdt_note *note, bool is_free)
{
	struct sampler_site site = { .off = note->location_off,
				     .semaphore_off = note->semaphore_off,
				     .is_free = is_free };
	struct ht_operand op[ALLOC_ARGS] = { 0 };
	int err = usdt_operands_parse(note->args, op, is_free ? FREE_ARGS : ALLOC_ARGS);

	if (!err && note->semaphore_vaddr && !note->semaphore_off)
		err = -ENOTSUP; /* it would never be switched on */
	if (err) {
		snprintf(s->problem, sizeof(s->problem),
			 "the arguments of %s:%s are in a place that heaptap does not read "
			 "(\"%.60s\")",
			 s->provider, note->name, note->args);
		return 0;
	}
	if (s->sites.cnt >= SAMPLER_SITES_CAP) {
		snprintf(s->problem, sizeof(s->problem), "%s is at more than %d places",
			 s->provider, SAMPLER_SITES_CAP);
		return 0;
	}
	site.where = (struct ht_sampled_site){ .ptr = op[0], .size = op[1], .weight = op[2] };
	return has_site(s, site.off) ? 0 : vec_push(&s->sites, site);
}

/* Frees come first: so no allocation is seen whose free could be missed. */
static int add_sites(struct file_sampler *s, const struct usdt_note *notes, size_t cnt)
{
	size_t free_cnt = 0;
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		if (!strcmp(notes[i].name, "free"))
			err = add_site(s, &notes[i], true);
	free_cnt = s->sites.cnt;
	for (size_t i = 0; i < cnt && !err; i++)
		if (!strcmp(notes[i].name, "alloc"))
			err = add_site(s, &notes[i], false);
	if (!err && !s->problem[0] && !free_cnt)
		snprintf(s->problem, sizeof(s->problem),
			 "%s reports no frees, so heap in use would be unknown", s->provider);
	if (!err && !s->problem[0] && free_cnt == s->sites.cnt)
		snprintf(s->problem, sizeof(s->problem), "%s reports no allocations", s->provider);
	if (s->problem[0])
		vec_release(&s->sites);
	return err;
}

static bool is_program(const struct elf_file *ef)
{
	GElf_Phdr ph;

	return elf_file_phdr(ef, PT_INTERP, &ph);
}

static int scan_provider(struct elf_file *ef, const char *provider, struct file_sampler *s)
{
	struct usdt_note *notes;
	size_t cnt;
	int err = usdt_notes_find(ef, provider, &notes, &cnt);

	if (err)
		return err;
	snprintf(s->provider, sizeof(s->provider), "%s", provider);
	err = add_sites(s, notes, cnt);
	free(notes);
	return err;
}

int file_sampler_scan(struct elf_file *ef, bool has_allocator, struct file_sampler **ret)
{
	struct file_sampler *s = calloc(1, sizeof(*s));
	int err = -ENOENT;

	*ret = NULL;
	if (!s)
		return -ENOMEM;
	s->is_whole = has_allocator || is_program(ef);
	for (size_t i = 0; i < ARRAY_CNT(providers) && err == -ENOENT; i++)
		err = scan_provider(ef, providers[i], s);
	if (!err) {
		*ret = s;
		return 0;
	}
	file_sampler_free(s);
	return err == -ENOMEM ? err : 0;
}
