/* SPDX-License-Identifier: MIT */
/*
 * survey_tags.c - see survey.h. Reads files and process with the code of a recording (tag_sources.c), one
 * tag at a time so that each tag's state can be reported.
 */
#include "proc/survey.h"

#include <errno.h>

#include "base/err.h"
#include "proc/tag_sources.h"

static int add(struct survey_tags *ret, const struct survey_tag *tag)
{
	return vec_push(&ret->all, *tag);
}

/* An error of reading the process, unless it ends the survey. */
static int add_unread(struct survey_tags *ret, struct survey_tag *tag, int err)
{
	if (err == -ESRCH || err == -ENOMEM)
		return err;
	if (err == -EPERM || err == -EACCES)
		err_set_os(&tag->problem, err, "cannot read the memory of the process");
	return add(ret, tag);
}

static int add_scopes(pid_t tid, uint64_t addr, struct survey_tags *ret)
{
	struct survey_tag tag = { .kind = HT_TAG_SCOPE };
	struct scope_descriptor *d = &tag.descriptor;
	int err = scope_descriptor_read(tid, addr, d, &tag.problem);

	if (err)
		return add_unread(ret, &tag, err);
	tag.has_descriptor = true;
	tag.tls_mode = d->tls_mode;
	if (d->tls_mode == HT_TLS_STATIC)
		tag.tls_off = d->tls_off;
	if (d->tls_mode == HT_TLS_DTV) {
		tag.tls_off = (int64_t)d->dtv_off;
		tag.tls_module = d->dtv_module;
	}
	return add(ret, &tag);
}

/* file has only this pointer. */
static int add_pointer(pid_t tid, uint32_t kind, const struct tag_file *file, uint64_t bias,
		       uint32_t dtv_shift, struct survey_tags *ret)
{
	struct survey_tag tag = { .kind = kind };
	struct tag_sources found;
	int err = tag_sources_read(tid, file, bias, dtv_shift, &found);

	if (err)
		return add_unread(ret, &tag, err);
	if (found.cnt) {
		tag.tls_mode = found.source[0].tls_mode;
		tag.tls_off = found.source[0].tls_off;
		tag.tls_module = found.source[0].tls_module;
	}
	return add(ret, &tag);
}

/* Add a tag that is in the file but cannot be used, whatever the process does. */
static int add_problem(const struct tag_file *file, struct survey_tags *ret)
{
	struct survey_tag tag = { .kind = file->problem_kind };

	err_set(&tag.problem, 0, "%s", file->problem);
	return add(ret, &tag);
}

int survey_tags_read(pid_t tid, struct elf_file *ef, uint64_t bias, uint32_t dtv_shift,
		     struct survey_tags *ret)
{
	struct tag_file file, one;
	uint32_t i;
	int err = tag_file_scan(ef, &file);

	if (err)
		return err == -ENOMEM ? err : 0;
	for (i = 0; i < file.descriptor_cnt && !err; i++)
		err = add_scopes(tid, file.descriptor_vaddr[i] + bias, ret);
	if (!err && file.has_otel) {
		one = (struct tag_file){ .has_otel = true, .otel = file.otel };
		err = add_pointer(tid, HT_TAG_OTEL, &one, bias, dtv_shift, ret);
	}
	if (!err && file.has_custom) {
		one = (struct tag_file){ .has_custom = true, .custom = file.custom };
		err = add_pointer(tid, HT_TAG_CUSTOM, &one, bias, dtv_shift, ret);
	}
	if (!err && file.problem[0])
		err = add_problem(&file, ret);
	return err;
}
