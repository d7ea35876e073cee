/* SPDX-License-Identifier: MIT */
/*
 * cmd/tap_preview.c - see record_settings.h.
 *
 * It does not know what shows only when threads are stopped: a thread that sleeps in the kernel for too long, or a
 * seccomp filter that the kernel does not suspend.
 */
#include "cmd/record_settings.h"

#include <linux/capability.h>

#include "alloc/allocators.h"
#include "base/err.h"
#include "base/printable.h"
#include "base/units.h"
#include "kernel/privileges.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "proc/survey.h"
#include "tap/tap.h"
#include "track/tap_orders.h"

#define NAME_BYTES 32

struct preview {
	struct process_info info;
	FILE *out;
	int err; /* error of the first objection */
	struct err why; /* its sentence */
};

/* Only the first refusal is reported. */
__attribute__((format(printf, 3, 4))) static void refuse(struct preview *v, int err,
							 const char *fmt, ...)
{
	va_list args;

	if (v->err)
		return;
	va_start(args, fmt);
	v->err = err_set_args(&v->why, err, fmt, args);
	va_end(args);
}

/* "redis-server" */
static const char *name_of(pid_t pid, char buf[NAME_BYTES])
{
	struct process_info info;

	snprintf(buf, NAME_BYTES, "%s", process_glance(NULL, pid, &info) ? "?" : info.comm);
	make_printable(buf);
	return buf;
}

static void check_process(struct preview *v)
{
	pid_t tracer = (pid_t)proc_status_number(v->info.tgid, "TracerPid", 0);
	struct privileges p;
	char name[NAME_BYTES];

	if (tracer)
		refuse(v, -EPERM, "%s (PID %d) is debugging or tracing it: end that first",
		       name_of(tracer, name), tracer);
	if (!privileges_read(&p) && !privileges_have(&p, CAP_SYS_PTRACE))
		refuse(v, -EPERM, "heaptap needs CAP_SYS_PTRACE to stop it: run heaptap as root");
}

static const struct alloc_site *site_at(const struct alloc_file *alloc, uint64_t vaddr)
{
	const struct alloc_site *s;

	vec_each(&alloc->sites, s)
		if (s->tap.vaddr && (s->tap.vaddr == vaddr || s->tap.branch_vaddr == vaddr))
			return s;
	return NULL;
}

static void put_bytes(FILE *out, const uint8_t *bytes, unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		fprintf(out, "%s%02x", i ? " " : "", bytes[i]);
}

static void show_patch(struct preview *v, const struct survey_file *file,
		       const struct tap_patch *patch)
{
	const struct alloc_site *site = site_at(file->alloc, patch->site_addr - file->bias);
	uint8_t there[TAP_PATCH_CAP];
	char name[NAME_BYTES + 64] = "";
	int err = process_memory_read(NULL, v->info.live_tid, patch->addr, there, patch->byte_cnt);

	if (site && patch->is_gap)
		snprintf(name, sizeof(name), "  a gap, to");
	else if (site)
		snprintf(name, sizeof(name), "%.22s%+lld", site->symbol,
			 (long long)(patch->addr - file->bias - site->fn_vaddr));
	fprintf(v->out, "    %-28s 0x%-14llx ", name, (unsigned long long)patch->addr);
	put_bytes(v->out, patch->original, patch->byte_cnt);
	fputs(" -> ", v->out);
	put_bytes(v->out, patch->patched, patch->byte_cnt);
	fputs(!site || patch->is_gap ? "" :
	      site->tap.uses_scratch ? ", saves r10 r11" :
				       ", r10 r11",
	      v->out);
	fputc('\n', v->out);
	if (err)
		refuse(v, err, "its memory cannot be read: %s", strerror(-err));
	else if (memcmp(there, patch->original, patch->byte_cnt) != 0)
		refuse(v, -EBUSY,
		       "its code at 0x%llx differs from its file: another heaptap, or another "
		       "tool's probe or breakpoint",
		       (unsigned long long)patch->addr);
}

static void show_order(struct preview *v, const struct survey_file *file,
		       const struct tap_order *order)
{
	const struct tap_header *h = tap_code_header(&order->code);
	const size_t data_bytes = TAP_DATA_BYTES; /* in pages: divided as whole numbers */
	char code[UNITS_BUF], data[UNITS_BUF], missed[160], path[4096];
	unsigned int byte_cnt = 0;

	snprintf(path, sizeof(path), "%s", file->path);
	make_printable(path);
	for (uint32_t i = 0; i < h->patch_cnt; i++)
		byte_cnt += h->patch[i].byte_cnt;
	if (order->is_mapped)
		fprintf(v->out, "  uses the memory of an earlier tap at 0x%llx\n",
			(unsigned long long)order->code_addr);
	else
		fprintf(v->out, "  maps %s of code and %s of data at 0x%llx; they stay mapped\n",
			format_bytes(TAP_CODE_BYTES, code, sizeof(code)),
			format_bytes((double)data_bytes, data, sizeof(data)),
			(unsigned long long)order->code_addr);
	fprintf(v->out, "  changes %u bytes of %s (%s), in this process only, until the end:\n",
		byte_cnt, path, file->alloc->family);
	for (uint32_t i = 0; i < h->patch_cnt; i++)
		show_patch(v, file, &h->patch[i]);
	tap_code_missed(file->alloc, missed, sizeof(missed));
	if (missed[0])
		fprintf(v->out, "  does not sample calls to: %s\n", missed);
}

static void show_files(struct preview *v, const struct survey *s)
{
	struct tap_order *order = malloc(sizeof(*order));
	const struct survey_file *file;
	struct err why;
	size_t cnt = 0;

	if (!order) {
		refuse(v, -ENOMEM, "out of memory");
		return;
	}
	vec_each(&s->files, file) {
		const struct tap_order_file of = { file->alloc, file->ino, file->bias, file->dev };
		int err;

		if (!file->alloc)
			continue;
		cnt++;
		err = tap_order_preview(NULL, &of, v->info.tgid, v->info.live_tid, order, &why);
		if (err)
			refuse(v, err, "%s", why.text);
		else
			show_order(v, file, order);
	}
	if (!cnt)
		refuse(v, -ENOENT, "it maps no known allocator");
	free(order);
}

int tap_preview(pid_t pid, FILE *out)
{
	struct preview v = { .out = out };
	struct survey *s = NULL;
	char name[NAME_BYTES];
	int err = process_info_read(NULL, pid, &v.info);

	if (err)
		err_set(&v.why, err, "there is no such process (ps -e lists them)");
	else
		err = process_check_probing(&v.info, &v.why);
	if (!err) {
		err = survey_process(&v.info, &s);
		if (err)
			err_set_os(&v.why, err, "it cannot be read");
	}
	v.err = err;
	fprintf(out, "A tap of PID %d (%s)\n", pid, name_of(pid, name));
	if (!err) {
		fprintf(out, "  stops its %u thread%s for milliseconds, now and at the end\n",
			v.info.thread_cnt, v.info.thread_cnt == 1 ? "" : "s");
		check_process(&v);
		show_files(&v, s);
		if (v.info.seccomp)
			fputs("  suspends its seccomp filter for that moment\n", out);
	}
	if (v.err)
		fprintf(out, "It would be refused: %s.\nNothing was changed.\n", v.why.text);
	else
		fprintf(out,
			"The tap is possible. Nothing was changed. To record with it: heaptap "
			"record --tap -p %d\n",
			pid);
	survey_free(s);
	return v.err;
}
