/* SPDX-License-Identifier: MIT */
/*
 * fuzz_survey.c - what doctor looks at: a process with any mappings, of any file.
 *
 * The input is its maps file, a byte 0xff, its memory (for the vDSO, and what text is compared with), a byte
 * 0xff, and the file that all of its mappings are of.
 */
#include "fuzz.h"

#include "cost.h"
#include "made_proc.h"
#include "alloc/allocators.h"
#include "proc/survey.h"

/* Not there: its memory is read by the kernel, which has none of it. */
#define PID 4194305

static void check_file(const struct survey_file *f)
{
	const struct survey_tag *tag;
	size_t probed_cnt = 0;

	if (!f->path || strnlen(f->build_id, sizeof(f->build_id)) == sizeof(f->build_id) ||
	    f->open_err > 0 || (f->is_probed && !f->alloc))
		abort();
	for (size_t i = 0; f->is_probed && i < f->alloc->sites.cnt; i++)
		probed_cnt += f->is_probed[i];
	if (probed_cnt != f->probed_cnt)
		abort();
	vec_each(&f->tags.all, tag)
		if (strnlen(tag->problem.text, ERR_BYTES) == ERR_BYTES)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct made_file files[] = { { .name = "maps" },
				     { .name = "mem" },
				     { .name = "map_files" } };
	const struct process_info info = { .pid = PID, .tgid = PID, .live_tid = PID };
	uint64_t start_ns = cost_now_ns();
	const struct survey_file *file;
	struct survey *s = NULL;

	made_proc_split(files, sizeof(files) / sizeof(*files), data, bytes);
	if (!survey_process(&info, &s)) {
		vec_each(&s->files, file)
			check_file(file);
		if (cost_now_ns() - start_ns >
		    COST_BASE_NS + (s->files.cnt + 1) * bytes * COST_NS_PER_BYTE)
			abort();
		survey_free(s);
	}
	made_file_cnt = 0;
	return 0;
}
