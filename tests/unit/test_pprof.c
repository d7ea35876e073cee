/* SPDX-License-Identifier: MIT */
/* test_pprof.c - profiles written, read back and checked; files that are none, cut off, bombs. */
#include "made_profile.h"

#include <zlib.h>

#include "made_note.h"
#include "profile/wire.h"

#define FILE_CAP (1 << 20)

/* A valid profile: one mapping, two functions, one location with an inline, two samples. */
static struct profile *make_profile(void)
{
	struct profile *p = made_profile(65536);
	struct profile_label label = text_label(p, "thread", "worker");
	struct profile_sample *s;
	struct profile_mapping m = { .limit = UINT64_MAX,
				     .filename_str = profile_str(p, "/bin/server"),
				     .build_id_str = profile_str(p, "00ff"),
				     .has_functions = true };
	struct profile_function f = { profile_str(p, "load"), profile_str(p, "_Z4loadv"),
				      profile_str(p, "a.cc"), 7 };
	struct profile_function g = { profile_str(p, "m\xc3\xa4in"), profile_str(p, "main"), 0, 0 };
	struct profile_location l = { .mapping = 0, .address = 0x1234, .line_cnt = 2 };
	struct profile_location bare = { .mapping = HT_NO_INDEX, .line_first = 1, .line_cnt = 1 };

	p->time_ns = 1700000000000000000;
	assert_int_equal(vec_push(&p->mappings, m), 0);
	assert_int_equal(vec_push(&p->functions, f), 0);
	assert_int_equal(vec_push(&p->functions, g), 0);
	assert_int_equal(vec_push(&p->lines, (struct profile_line){ 0, 9 }), 0);
	assert_int_equal(vec_push(&p->lines, (struct profile_line){ 1, 0 }), 0);
	assert_int_equal(vec_push(&p->locations, l), 0);
	assert_int_equal(vec_push(&p->locations, bare), 0);
	assert_int_equal(profile_add_sample(p, (uint32_t[]){ 0, 1 }, 2, (int64_t[]){ 5, 50, 1, 10 },
					    &label, 1, &s),
			 0);
	s->has_error = true;
	s->inuse_samples = 1;
	s->inuse_bytes_variance = 12.5;
	s->inuse_objects_variance = 0.25;
	s->pinned_bytes_variance = 7.5;
	s->alloc_samples = 5;
	s->alloc_bytes_variance = 2.5;
	s->alloc_bytes_beyond = 0x1p70;
	assert_int_equal(profile_add_sample(p, (uint32_t[]){ 0 }, 1, (int64_t[]){ 1, 2, 0, 0 },
					    NULL, 0, NULL),
			 0);
	assert_int_equal(profile_comment(p, "heaptap"), 0);
	assert_int_equal(made_note(p, "scope_peak: bytes=%d scope=Top", 7), 0);
	return p;
}

static uint8_t *new_buffer(void)
{
	return unit_keep(malloc(FILE_CAP), free);
}

static size_t write_to(const struct profile *p, uint8_t *file)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	assert_int_equal(pprof_write(p, fd), 0);
	n = pread(fd, file, FILE_CAP, 0);
	assert_true(n > 0 && n < FILE_CAP);
	close(fd);
	return n;
}

TEST(survives_the_way_there_and_back)
{
	uint8_t *file = new_buffer();
	struct profile *p = make_profile(), *q = NULL;
	struct err why;
	size_t n = write_to(p, file);

	if (pprof_check(file, n, &why))
		fail_msg("%s", why.text);
	if (pprof_read_mem(file, n, &q, &why))
		fail_msg("%s", why.text);
	assert_int_equal(q->types.cnt, PROFILE_VALUE_CNT);
	assert_int_equal(q->period, 65536);
	assert_int_equal(q->time_ns, p->time_ns);
	assert_string_equal(profile_text(q, q->default_type_str), "inuse_space");
	assert_string_equal(profile_text(q, q->period_type.type_str), "space");
	assert_int_equal(q->mappings.cnt, 1);
	assert_true(q->mappings.data[0].limit == UINT64_MAX);
	assert_true(q->mappings.data[0].has_functions);
	assert_false(q->mappings.data[0].has_inline_frames);
	assert_string_equal(profile_text(q, q->mappings.data[0].build_id_str), "00ff");
	assert_string_equal(profile_text(q, q->functions.data[1].name_str), "m\xc3\xa4in");
	assert_string_equal(profile_text(q, q->functions.data[0].system_name_str), "_Z4loadv");
	assert_int_equal(q->functions.data[0].start_line, 7);
	assert_int_equal(q->locations.data[0].address, 0x1234);
	assert_int_equal(q->locations.data[0].line_cnt, 2);
	assert_int_equal(q->lines.data[q->locations.data[0].line_first].line, 9);
	assert_true(q->locations.data[1].mapping == HT_NO_INDEX);
	assert_int_equal(q->samples.cnt, 2);
	assert_int_equal(q->samples.data[0].loc_cnt, 2);
	assert_int_equal(q->sample_locs.data[1], 1);
	assert_int_equal(q->values.data[PROFILE_ALLOC_SPACE], 50);
	assert_string_equal(profile_sample_label(q, &q->samples.data[0], "thread"), "worker");
	assert_true(q->samples.data[0].has_error);
	assert_int_equal(q->samples.data[0].inuse_samples, 1);
	assert_true(q->samples.data[0].inuse_bytes_variance == 12.5);
	assert_true(q->samples.data[0].inuse_objects_variance == 0.25);
	assert_true(q->samples.data[0].pinned_bytes_variance == 7.5);
	assert_int_equal(q->samples.data[0].alloc_samples, 5);
	assert_true(q->samples.data[0].alloc_bytes_variance == 2.5);
	assert_true(q->samples.data[0].alloc_bytes_beyond == 0x1p70);
	assert_false(q->samples.data[1].has_error);
	assert_int_equal(q->comments.cnt, 1);
	assert_string_equal(profile_text(q, q->comments.data[0]), "heaptap");
	assert_int_equal(q->scope_notes.cnt, 1);
	assert_int_equal(q->scope_notes.data[0].peak_bytes, 7);
	assert_string_equal(profile_text(q, q->scope_notes.data[0].path_str), "Top");
	assert_false(q->recording.is_known);
	profile_free(q);
}

/* What is not known stays not known: NAN is written as such. */
TEST(recording_survives)
{
	uint8_t *file = new_buffer();
	struct profile *p = make_profile(), *q = NULL;
	struct recording *r = &p->recording;
	struct err why;
	size_t n;

	*r = RECORDING_NONE;
	r->is_known = true;
	r->pid = 14662;
	r->comm_str = profile_str(p, "server");
	r->exe_str = profile_str(p, "/bin/server");
	r->process_cnt = 1;
	r->reason_str = profile_str(p, "peak");
	r->begin_ns = 1700000000000000000;
	r->end_ns = 1700000020000000000;
	r->duration_ns = 20000000000;
	r->watched_ns = 5000000000;
	r->overhead_share = 0.09;
	r->overhead_one_cpu = 0.03;
	r->limit = (struct recording_limit){ 0.25, 0.25 };
	r->inuse = RECORDING_INUSE_SINCE;
	r->inuse_since_ns = 1700000010000000000;
	r->is_lossy = r->follows_children = true;
	r->rss_begin_bytes = 9 << 20;
	r->rss_end_bytes = 13 << 20;
	r->exec_held_bytes = 108253;
	r->exec_held_objects = 103;
	n = write_to(p, file);
	if (pprof_check(file, n, &why) || pprof_read_mem(file, n, &q, &why))
		fail_msg("%s", why.text);
	assert_true(q->recording.is_known);
	assert_int_equal(q->recording.pid, 14662);
	assert_string_equal(profile_text(q, q->recording.comm_str), "server");
	assert_string_equal(profile_text(q, q->recording.exe_str), "/bin/server");
	assert_string_equal(profile_text(q, q->recording.reason_str), "peak");
	assert_int_equal(q->recording.process_cnt, 1);
	assert_int_equal(q->recording.begin_ns, r->begin_ns);
	assert_int_equal(q->recording.end_ns, r->end_ns);
	assert_int_equal(q->recording.duration_ns, r->duration_ns);
	assert_int_equal(q->recording.watched_ns, r->watched_ns);
	assert_true(q->recording.overhead_share == 0.09);
	assert_true(q->recording.overhead_one_cpu == 0.03);
	assert_true(isnan(q->recording.full_share) && isnan(q->recording.full_one_cpu));
	assert_true(q->recording.limit.cpu_share == 0.25 && q->recording.limit.one_cpu == 0.25);
	assert_int_equal(q->recording.inuse, RECORDING_INUSE_SINCE);
	assert_int_equal(q->recording.inuse_since_ns, r->inuse_since_ns);
	assert_true(q->recording.follows_children && q->recording.is_lossy &&
		    !q->recording.is_from_start);
	assert_int_equal(q->recording.rss_begin_bytes, 9 << 20);
	assert_int_equal(q->recording.rss_end_bytes, 13 << 20);
	assert_int_equal(q->recording.exec_held_bytes, 108253);
	assert_int_equal(q->recording.exec_held_objects, 103);
	profile_free(q);
}

static size_t unpack(const uint8_t *file, size_t n, uint8_t *raw)
{
	const uint8_t *data;
	struct err why;
	uint8_t *owned;
	size_t bytes;

	assert_int_equal(gunzip_mem(file, n, GUNZIP_BYTES_MAX, &owned, &data, &bytes, &why), 0);
	memcpy(raw, data, bytes);
	free(owned);
	return bytes;
}

/* Wherever the file ends early: an error with a sentence and an offset within it, or, where only
 * whole fields are missing, a profile; never a crash. */
TEST(cut_anywhere)
{
	uint8_t *file = new_buffer(), *raw = new_buffer();
	struct profile *p = make_profile(), *q;
	size_t n = write_to(p, file), bytes = unpack(file, n, raw), failed = 0;
	struct err why;

	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *exact = malloc(cut + 1); /* so that a read behind it is seen */

		memcpy(exact, file, cut);
		assert_int_equal(pprof_read_mem(exact, cut, &q, &why), -EBADMSG);
		assert_true(why.text[0] && why.offset <= cut);
		if (cut > 20)
			assert_says(why.text, "cut off");
		free(exact);
	}
	for (size_t cut = 0; cut < bytes; cut++) {
		uint8_t *exact = malloc(cut + 1);
		int err;

		memcpy(exact, raw, cut);
		q = NULL;
		err = pprof_read_mem(exact, cut, &q, &why);
		assert_true(err == 0 || err == -EBADMSG);
		if (err)
			assert_true(why.text[0] && why.offset <= cut);
		failed += err != 0;
		assert_int_equal(pprof_check(exact, cut, &why), -EBADMSG);
		profile_free(q);
		free(exact);
	}
	assert_true(failed > bytes / 2);
}

TEST(says_what_it_is_instead)
{
	static const struct {
		const char *data;
		size_t bytes;
		const char *want;
	} cases[] = {
		{ "", 0, "empty" },
		{ "\177ELF\2\1\1", 7, "ELF" },
		{ "{\"a\":1}", 7, "JSON" },
		{ "total used free\n1 2 3\n", 22, "text" },
		{ "\x28\xb5\x2f\xfd\0\0", 6, "zstd" },
		{ "\x1f\x8b\x08\0\0\0\0\0\0\x03garbage!", 18, "compressed" },
		{ "\x07\x01", 2, "protobuf" },
		{ "\x0a\x05\x08\x01", 4, "cut off" },
		{ "\x48\x01", 2, "no sample types" },
		{ "\x0a\x04\x08\x01\x10\x02\x32\x00", 8, "string 1" },
	};
	struct err why;
	struct profile *p;

	each_case(c, cases) {
		assert_int_equal(pprof_read_mem(c->data, c->bytes, &p, &why), -EBADMSG);
		if (!strstr(why.text, c->want))
			fail_msg("case %zu: '%s' does not say '%s'", (size_t)(c - cases), why.text,
				 c->want);
	}
}

TEST(error_names_the_offset)
{
	/* a sample type, two strings' worth of table, then a sample with two values */
	static const uint8_t data[] = { 0x32, 0, 0x0a, 0, 0x12, 4, 0x12, 2, 1, 1 };
	struct err why;
	struct profile *p;

	assert_int_equal(pprof_read_mem(data, sizeof(data), &p, &why), -EBADMSG);
	assert_int_equal(why.offset, 4);
	assert_says(why.text, "2 values");
}

/* gzip takes zeros to a thousandth of their size. */
static void refuse_zeros(size_t zero_cnt, size_t max, struct err *ret)
{
	uint8_t *zeros = calloc(1, zero_cnt), *packed = malloc(FILE_CAP), *owned = NULL;
	z_stream z = {
		.next_in = zeros, .avail_in = zero_cnt, .next_out = packed, .avail_out = FILE_CAP
	};
	const uint8_t *data;
	size_t bytes;

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(gunzip_mem(packed, z.total_out, max, &owned, &data, &bytes, ret),
			 -EBADMSG);
	deflateEnd(&z);
	free(zeros);
	free(packed);
}

TEST(refuses_a_bomb)
{
	struct err why;

	refuse_zeros(FILE_CAP, FILE_CAP / 2, &why);
	assert_says(why.text, "limit");
	refuse_zeros(64 << 20, GUNZIP_BYTES_MAX, &why);
	assert_says(why.text, "unusual for a profile of its size");
	assert_true(why.offset < 20 << 20);
}

/* break_NAME() makes a profile break a rule. */
#define BREAK(name, ...)                            \
	static void break_##name(struct profile *p) \
	{                                           \
		__VA_ARGS__;                        \
	}
BREAK(mapping, p->mappings.data[0].limit = 0)
BREAK(mapping_name, p->mappings.data[0].filename_str = 0)
BREAK(build_id, p->mappings.data[0].build_id_str = profile_str(p, "XYZ"))
BREAK(lines, p->locations.data[0].line_cnt = 0)
BREAK(function, p->lines.data[0].function = 99)
BREAK(function_name, p->functions.data[0].name_str = 0)
BREAK(location, p->sample_locs.data[0] = 99)
BREAK(twins, p->locations.data[1] = p->locations.data[0])
BREAK(value, p->values.data[0] = -1)
BREAK(label, p->labels.data[0].num = 3)
BREAK(period, p->period = 0)
BREAK(time, p->time_ns = 0)
BREAK(type, p->types.data[0] = p->types.data[1])
BREAK(default, p->default_type_str = 0)
BREAK(variance, p->samples.data[0].inuse_bytes_variance = -1)
BREAK(stack, p->samples.data[0].loc_cnt = 0)

/* Another key and value for the label of sample 0. */
static void set_label(struct profile *p, const char *key, const char *str, int64_t num)
{
	p->labels.data[0].key_str = profile_str(p, key);
	p->labels.data[0].str = str ? profile_str(p, str) : 0;
	p->labels.data[0].num = num;
}
BREAK(task, set_label(p, "task", "seven", 0))
static void break_task_unit(struct profile *p)
{
	set_label(p, "task", NULL, 7);
	p->labels.data[0].num_unit_str = profile_str(p, "bytes");
}
BREAK(task_scope, set_label(p, "task", NULL, 7))
BREAK(task_state, set_label(p, "task_state", "live", 0))
BREAK(task_state_alone, set_label(p, "task_state", "exited", 0))
BREAK(scope, set_label(p, "scope", NULL, 7))
/* A sample of a task, as it should be. */
static void add_task(struct profile *p, int64_t alloc_bytes)
{
	struct profile_label labels[] = {
		text_label(p, "scope", "Top/conn"),
		number_label(p, "task", 7),
		text_label(p, "task_state", "exited"),
	};

	assert_int_equal(profile_add_sample(p, (uint32_t[]){ 0 }, 1,
					    (int64_t[]){ 0, alloc_bytes, 1, 5 }, labels, 3, NULL),
			 0);
}
BREAK(task_sum, add_task(p, 1))
static void break_note(struct profile *p)
{
	const struct scope_note note = { .kind = SCOPE_NOTE_INSTANCE,
					 .task = 7,
					 .inuse_bytes = -1 };

	assert_int_equal(profile_add_scope_note(p, &note, "Top/conn"), 0);
}
static void break_peak(struct profile *p)
{
	const struct scope_note note = { .kind = SCOPE_NOTE_PEAK, .peak_bytes = -1 };

	assert_int_equal(profile_add_scope_note(p, &note, "Top"), 0);
}

TEST(checker_takes_scopes_and_tasks)
{
	uint8_t *file = new_buffer();
	struct profile *p = make_profile();
	struct err why = { 0 };

	add_task(p, 0);
	made_note(p, "scope_peak: bytes=7 time=2026-11-21T22:01:02.123Z scope=Top");
	made_note(p, "instance: task=7 state=exited inuse_bytes=5 scope=Top/conn");
	if (pprof_check(file, write_to(p, file), &why))
		fail_msg("%s", why.text);
}

TEST(checker_sees_each_broken_rule)
{
	static const struct {
		void (*fn)(struct profile *p);
		const char *want;
	} cases[] = {
		{ break_mapping, "0 to 2^64-1" },
		{ break_mapping_name, "no file name" },
		{ break_build_id, "hexadecimal" },
		{ break_lines, "no line" },
		{ break_function, "function 100" },
		{ break_function_name, "no name" },
		{ break_location, "location 100" },
		{ break_twins, "the same as another" },
		{ break_value, "negative value" },
		{ break_label, "text and a number" },
		{ break_period, "period" },
		{ break_time, "no time" },
		{ break_type, "sample type 0" },
		{ break_default, "default sample type" },
		{ break_variance, "variance" },
		{ break_stack, "no stack" },
		{ break_task, "not a plain number" },
		{ break_task_unit, "not a plain number" },
		{ break_task_scope, "a task, but no scope" },
		{ break_task_state, "the task_state 'live'" },
		{ break_task_state_alone, "but no task" },
		{ break_scope, "'scope' without text" },
		{ break_task_sum, "a task and an allocated sum" },
		{ break_note, "is not understood: 'instance: " },
		{ break_peak, "is not understood: 'scope_peak: " },
	};
	uint8_t *file = new_buffer();

	each_case(c, cases) {
		struct profile *p = make_profile();
		struct err why = { 0 };
		size_t n;

		c->fn(p);
		n = write_to(p, file);
		assert_int_equal(pprof_check(file, n, &why), -EBADMSG);
		if (!strstr(why.text, c->want))
			fail_msg("case %zu: '%s' does not say '%s'", (size_t)(c - cases), why.text,
				 c->want);
	}
}

/* Two labels of one key, and bytes that are not UTF-8: the writer cannot be made to write them. */
TEST(checker_sees_raw_faults)
{
	uint8_t *file = new_buffer(), *raw = new_buffer(), *at;
	struct profile *p = make_profile();
	size_t bytes = unpack(file, write_to(p, file), raw);
	struct err why;

	assert_int_equal(pprof_check(raw, bytes, &why), 0);
	at = memmem(raw, bytes, "m\xc3\xa4in", 5);
	assert_non_null(at);
	at[2] = 'x';
	assert_int_equal(pprof_check(raw, bytes, &why), -EBADMSG);
	assert_says(why.text, "UTF-8");
	assert_true(why.offset == (uint64_t)(at - raw) - 2);
}

TEST(write_error_is_returned)
{
	struct profile *p = make_profile();
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	assert_int_equal(pprof_write(p, fileno(full)), -ENOSPC);
	assert_int_equal(pprof_write(p, -1), -EBADF);
	fclose(full);
}

RUN_TESTS()
