/* SPDX-License-Identifier: MIT */
/* report_frames.c - names of frames, and the module to which a stack is charged. */

#include "report/report_places.h"
#include "report/report_rows.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

bool report_next_frame(const struct profile *p, const struct profile_sample *s,
		       struct report_frame_pos *pos, struct report_frame *ret)
{
	const struct profile_location *l;

	if (pos->location >= s->loc_cnt)
		return false;
	l = &p->locations.data[p->sample_locs.data[s->loc_first + pos->location]];
	ret->location = l;
	ret->line = l->line_cnt ? &p->lines.data[l->line_first + pos->line] : NULL;
	ret->is_inlined = pos->line + 1 < l->line_cnt;
	pos->line++;
	if (pos->line >= l->line_cnt) {
		pos->location++;
		pos->line = 0;
	}
	return true;
}

const char *report_frame_module(const struct profile *p, const struct report_frame *f)
{
	const struct recording *rec = &p->recording;
	int64_t file;

	if (f->location->mapping == HT_NO_INDEX)
		return "";
	file = p->mappings.data[f->location->mapping].filename_str;
	return base_name(
		profile_text(p, file == rec->exe_str && rec->called_str ? rec->called_str : file));
}

const char *report_frame_name(const struct profile *p, const struct report_frame *f, char *buf,
			      size_t buf_bytes)
{
	const char *module = report_frame_module(p, f);
	uint64_t address = f->location->address;

	if (f->line) {
		const struct profile_function *fn = &p->functions.data[f->line->function];
		const char *name = profile_text(p, fn->name_str);

		if (!name[0])
			name = profile_text(p, fn->system_name_str);
		if (name[0])
			return name;
	}
	if (module[0]) /* a run-time address; mappings of heaptap's profiles start at 0 */
		address += p->mappings.data[f->location->mapping].offset -
			   p->mappings.data[f->location->mapping].start;
	snprintf(buf, buf_bytes, "%.400s%s0x%" PRIx64, module, module[0] ? "+" : "", address);
	return buf;
}

/* The longest prefix that the frame's module or function begins with, or NULL. */
static const char *match_prefix(const struct report *r, const struct report_frame *f)
{
	const char *module = report_frame_module(r->p, f), *best = NULL;
	char buf[REPORT_NAME_BUF];
	const char *name = report_frame_name(r->p, f, buf, sizeof(buf));

	for (size_t i = 0; i < r->opts->module_cnt; i++) {
		const char *prefix = r->opts->module[i];
		size_t n = strlen(prefix);

		if ((!strncmp(module, prefix, n) || !strncmp(name, prefix, n)) &&
		    (!best || n > strlen(best)))
			best = prefix;
	}
	return best;
}

const char *report_sample_module(const struct report *r, const struct profile_sample *s)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	const char *leaf = "";

	while (report_next_frame(r->p, s, &pos, &f)) {
		const char *module = report_frame_module(r->p, &f), *prefix;

		if (r->opts->module_cnt) {
			prefix = match_prefix(r, &f);
			if (prefix)
				return prefix;
			continue;
		}
		if (!leaf[0])
			leaf = module;
		if (module[0] && !report_is_system_module(module))
			return module;
	}
	if (r->opts->module_cnt)
		return "(no frame matches)";
	return leaf[0] ? leaf : "(no module)";
}
