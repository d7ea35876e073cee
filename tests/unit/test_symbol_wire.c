/* SPDX-License-Identifier: MIT */
/* test_symbol_wire.c - the helper's stream: what goes in comes out, and what breaks the rules. */
#include "unit.h"

#include "symbol/symbol_wire.h"

#define ADDR_CNT 4

/* A stream that a test puts together word by word. */
struct stream {
	uint8_t data[1 << 18];
	size_t bytes;
};

static void put_u32(struct stream *s, uint32_t v)
{
	memcpy(s->data + s->bytes, &v, 4);
	s->bytes += 4;
}

static void put_string(struct stream *s, const char *text)
{
	put_u32(s, WIRE_STRING);
	put_u32(s, (uint32_t)strlen(text));
	memcpy(s->data + s->bytes, text, strlen(text));
	s->bytes += strlen(text);
}

/* One frame. */
static void put_address(struct stream *s, uint32_t idx, uint32_t source, uint32_t name,
			uint32_t file)
{
	const uint32_t words[] = { WIRE_ADDRESS, 28, idx, source, name, name, file, 7, 3 };

	each_case(c, words)
		put_u32(s, *c);
}

static void put_words(struct stream *s, const uint32_t *words, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		put_u32(s, words[i]);
}

TEST(sound_stream_in_pieces)
{
	static struct stream s;

	s.bytes = 0;
	put_string(&s, "f");
	put_string(&s, "a\x1b[1mb\xff\xc2\x9b");
	put_address(&s, 2, WIRE_FROM_DWARF, 1, 2);
	put_address(&s, 0, WIRE_FROM_SYMBOL, 2, 0);
	put_words(&s, (const uint32_t[]){ WIRE_DONE, 4, WIRE_NO_SYMBOLS }, 3);
	for (size_t piece = 1; piece <= s.bytes; piece = piece * 3 + 1) {
		struct wire_reader r;

		assert_int_equal(wire_reader_init(&r, ADDR_CNT), 0);
		for (size_t at = 0; at < s.bytes; at += piece) {
			size_t n = s.bytes - at < piece ? s.bytes - at : piece;

			assert_int_equal(wire_reader_feed(&r, s.data + at, n), 0);
		}
		assert_true(r.is_done);
		assert_int_equal(r.done_flags, WIRE_NO_SYMBOLS);
		assert_int_equal(r.answers[2].cnt, 1);
		assert_string_equal(r.frames.data[r.answers[2].first].name, "f");
		assert_int_equal(r.frames.data[r.answers[2].first].line, 7);
		assert_int_equal(r.frames.data[r.answers[2].first].start_line, 3);
		/* controls are gone, and what is no UTF-8 is replaced */
		assert_string_equal(r.frames.data[r.answers[0].first].name, "a?[1mb??");
		assert_int_equal(r.answers[1].cnt + r.answers[3].cnt, 0);
		assert_int_equal(r.dwarf_cnt, 1);
		assert_int_equal(r.symbol_cnt, 1);
		wire_reader_release(&r);
	}
}

TEST(streams_that_break_the_rules)
{
	static const struct {
		const char *what;
		uint32_t words[16];
		size_t word_cnt;
	} cases[] = {
		{ "unknown kind", { 9, 4, 0 }, 3 },
		{ "kind 0", { 0, 0 }, 2 },
		{ "record too long", { WIRE_STRING, WIRE_BODY_BYTES_CAP + 1 }, 2 },
		{ "record of 4 GiB", { WIRE_STRING, UINT32_MAX }, 2 },
		{ "address without frames", { WIRE_ADDRESS, 8, 0, 1 }, 4 },
		{ "address without anything", { WIRE_ADDRESS, 0 }, 2 },
		{ "half a frame", { WIRE_ADDRESS, 16, 0, 1, 1, 1 }, 6 },
		{ "index out of range", { WIRE_ADDRESS, 28, ADDR_CNT, 1, 1, 1, 0, 0, 0 }, 9 },
		{ "index far out of range", { WIRE_ADDRESS, 28, UINT32_MAX, 1, 1, 1, 0, 0, 0 }, 9 },
		{ "unknown source", { WIRE_ADDRESS, 28, 0, 3, 1, 1, 0, 0, 0 }, 9 },
		{ "string that was not sent", { WIRE_ADDRESS, 28, 0, 1, 2, 1, 0, 0, 0 }, 9 },
		{ "string far away", { WIRE_ADDRESS, 28, 0, 1, 1, 1, UINT32_MAX, 0, 0 }, 9 },
		{ "no name", { WIRE_ADDRESS, 28, 0, 1, 0, 1, 0, 0, 0 }, 9 },
		{ "short end", { WIRE_DONE, 0 }, 2 },
		{ "long end", { WIRE_DONE, 8, 0, 0 }, 4 },
		{ "more after the end", { WIRE_DONE, 4, 0, WIRE_DONE, 4, 0 }, 6 },
	};
	static struct stream s;

	each_case(c, cases) {
		struct wire_reader r;
		int err;

		s.bytes = 0;
		put_string(&s, "f");
		put_words(&s, c->words, c->word_cnt);
		assert_int_equal(wire_reader_init(&r, ADDR_CNT), 0);
		err = wire_reader_feed(&r, s.data, s.bytes);
		if (err != -EBADMSG)
			fail_msg("%s: %d", c->what, err);
		wire_reader_release(&r);
	}
}

TEST(an_address_is_answered_once)
{
	static struct stream s;
	struct wire_reader r;

	s.bytes = 0;
	put_string(&s, "f");
	put_address(&s, 1, WIRE_FROM_DWARF, 1, 0);
	assert_int_equal(wire_reader_init(&r, ADDR_CNT), 0);
	assert_int_equal(wire_reader_feed(&r, s.data, s.bytes), 0);
	/* also by the next helper, which has its own strings */
	wire_reader_restart(&r);
	s.bytes = 0;
	put_address(&s, 2, WIRE_FROM_DWARF, 1, 0);
	assert_int_equal(wire_reader_feed(&r, s.data, s.bytes), -EBADMSG);
	wire_reader_restart(&r);
	s.bytes = 0;
	put_string(&s, "g");
	put_address(&s, 1, WIRE_FROM_DWARF, 1, 0);
	assert_int_equal(wire_reader_feed(&r, s.data, s.bytes), -EBADMSG);
	assert_string_equal(r.frames.data[r.answers[1].first].name, "f");
	wire_reader_release(&r);
}

TEST(endless_streams_are_cut)
{
	static struct stream s;
	struct wire_reader r;
	int err = 0, rounds = 0;

	s.bytes = 0;
	while (s.bytes < sizeof(s.data) - 64)
		put_string(&s, "the same again");
	assert_int_equal(wire_reader_init(&r, ADDR_CNT), 0);
	for (; !err && rounds < 10000; rounds++)
		err = wire_reader_feed(&r, s.data, s.bytes);
	assert_int_equal(err, -EBADMSG);
	wire_reader_release(&r);
}

TEST(writer_and_reader_agree)
{
	static char huge[200000];
	struct symbol_frame frames[WIRE_FRAMES_CAP + 5];
	struct wire_writer w;
	struct wire_reader r;
	uint8_t buf[4096];
	FILE *f = tmpfile();
	ssize_t n;

	memset(huge, 'x', sizeof(huge) - 1);
	for (size_t i = 0; i < WIRE_FRAMES_CAP + 5; i++)
		frames[i] = (struct symbol_frame){ "name", NULL, i % 2 ? "file" : "", 1, 2 };
	frames[1].name = huge;
	frames[2].name = "\xff\xfe";
	assert_int_equal(wire_writer_init(&w, fileno(f)), 0);
	assert_int_equal(wire_put_address(&w, 3, WIRE_FROM_DWARF, frames, WIRE_FRAMES_CAP + 5), 0);
	assert_int_equal(wire_put_address(&w, 0, WIRE_FROM_SYMBOL, frames, 1), 0);
	assert_int_equal(wire_put_done(&w, WIRE_NO_DEBUG_INFO), 0);
	wire_writer_release(&w);
	rewind(f);
	assert_int_equal(wire_reader_init(&r, ADDR_CNT), 0);
	while ((n = read(fileno(f), buf, sizeof(buf))) > 0)
		assert_int_equal(wire_reader_feed(&r, buf, (size_t)n), 0);
	fclose(f);
	assert_true(r.is_done);
	assert_int_equal(r.answers[3].cnt, WIRE_FRAMES_CAP);
	assert_int_equal(r.answers[0].cnt, 1);
	assert_string_equal(r.frames.data[0].name, "name");
	assert_string_equal(r.frames.data[1].file, "file");
	assert_true(strlen(r.frames.data[1].name) > 1000);
	assert_string_equal(r.frames.data[2].name, "\xef\xbf\xbd\xef\xbf\xbd");
	wire_reader_release(&r);
}

RUN_TESTS()
