/* SPDX-License-Identifier: MIT */
/* test_units.c - sizes and times, in and out. */
#include "unit.h"

#include "base/units.h"

#define CNT(a) (sizeof(a) / sizeof(*(a)))

struct parse_case {
	const char *in;
	int err;
	uint64_t value;
};

TEST(test_parse_size)
{
	static const struct parse_case cases[] = {
		{ "0", 0, 0 },
		{ "1", 0, 1 },
		{ "4096", 0, 4096 },
		{ "64k", 0, 65536 },
		{ "1m", 0, 1 << 20 },
		{ "2GiB", 0, 2ULL << 30 },
		{ "1.5K", 0, 1536 },
		{ "3tb", 0, 3ULL << 40 },
		{ "17B", 0, 17 },
		{ "", -EINVAL, 0 },
		{ "k", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 k", -EINVAL, 0 },
		{ "1kk", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
		{ "99999999t", -ERANGE, 0 },
		{ "1e999", -EINVAL, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1E3", -EINVAL, 0 },
		{ "1e", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ ".5m", -EINVAL, 0 },
		{ "1.5.5", -EINVAL, 0 },
		{ "1,5m", -EINVAL, 0 },
		{ "5%", -EINVAL, 0 },
		{ "4194304t", -ERANGE, 0 },
		{ "4194303t", 0, 4194303ULL << 40 },
	};

	each_case(c, cases) {
		uint64_t value = 0;

		assert_int_equal(parse_size(c->in, &value), c->err);
		assert_int_equal(value, c->value);
	}
}

TEST(test_parse_duration)
{
	static const struct parse_case cases[] = {
		{ "30", 0, 30000000000 },
		{ "30s", 0, 30000000000 },
		{ "0.5", 0, 500000000 },
		{ "500ms", 0, 500000000 },
		{ "5m", 0, 300000000000 },
		{ "1h", 0, 3600000000000 },
		{ "7us", 0, 7000 },
		{ "s", -EINVAL, 0 },
		{ "5x", -EINVAL, 0 },
		{ "-5", -EINVAL, 0 },
		{ "999999999h", -ERANGE, 0 },
		{ "1m30s", 0, 90000000000 },
		{ "2h", 0, 7200000000000 },
		{ "90", 0, 90000000000 },
		{ "1h5m0.5s", 0, 3900500000000 },
		{ "1M30S", 0, 90000000000 },
		{ "1m30", -EINVAL, 0 },
		{ "30 s", -EINVAL, 0 },
		{ "1m 30s", -EINVAL, 0 },
		{ "1m-30s", -EINVAL, 0 },
		{ "1mm", -EINVAL, 0 },
		{ "5minutes", -EINVAL, 0 },
		{ "1m30x", -EINVAL, 0 },
		{ "999999h999999999h", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1e3s", -EINVAL, 0 },
		{ ".5s", -EINVAL, 0 },
		/* it is added to the time of a clock */
		{ "5000000h", -ERANGE, 0 },
	};

	each_case(c, cases) {
		uint64_t value = 0;

		assert_int_equal(parse_duration(c->in, &value), c->err);
		assert_int_equal(value, c->value);
	}
}

TEST(test_parse_percent)
{
	static const struct {
		const char *in;
		int err;
		double value;
	} cases[] = {
		{ "5", 0, 5 },		{ "5%", 0, 5 },	       { "0", 0, 0 },
		{ "0.5%", 0, 0.5 },	{ "101%", 0, 101 },    { "", -EINVAL, 0 },
		{ "%", -EINVAL, 0 },	{ ".5", -EINVAL, 0 },  { "5%%", -EINVAL, 0 },
		{ "5 %", -EINVAL, 0 },	{ "1e1", -EINVAL, 0 }, { "1e1%", -EINVAL, 0 },
		{ "-5%", -EINVAL, 0 },	{ "nan", -EINVAL, 0 }, { "inf%", -EINVAL, 0 },
		{ "0x5%", -EINVAL, 0 }, { "5k", -EINVAL, 0 },  { "off", -EINVAL, 0 },
	};

	each_case(c, cases) {
		double value = 0;

		assert_int_equal(parse_percent(c->in, &value), c->err);
		if (!c->err)
			assert_true(value == c->value);
	}
}

/* A line is broken between words, and not between a number and its unit. */
TEST(test_words)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "", "" },
		{ "word", "word" },
		{ "two words", "two" },
		{ "12.3 MiB, more", "12.3 MiB," },
		{ "+6.00 MiB. The", "+6.00 MiB." },
		{ "-83.5 B in", "-83.5 B" },
		{ "(99 %) of", "(99 %)" },
		{ "1.3 MiB/min", "1.3 MiB/min" },
		{ "350 ms", "350 ms" },
		{ "10 s", "10 s" },
		{ "10 samples", "10" },
		{ "3 Bytes", "3" },
		{ "5 ", "5" },
		{ "by 12", "by" },
		{ "x MiB", "x" },
		{ " 5 MiB", "" },
	};

	each_case(c, cases)
		assert_int_equal(word_with_unit(c->text), strlen(c->word));
}

TEST(test_format)
{
	char buf[UNITS_BUF];

	assert_string_equal(format_bytes(0, buf, sizeof(buf)), "0 B");
	assert_string_equal(format_bytes(17, buf, sizeof(buf)), "17 B");
	assert_string_equal(format_bytes(1023, buf, sizeof(buf)), "1023 B");
	assert_string_equal(format_bytes(1024, buf, sizeof(buf)), "1.00 KiB");
	assert_string_equal(format_bytes(12.3 * 1048576, buf, sizeof(buf)), "12.3 MiB");
	assert_string_equal(format_bytes(1048575, buf, sizeof(buf)), "1.00 MiB");
	assert_string_equal(format_bytes(-2048, buf, sizeof(buf)), "-2.00 KiB");
	assert_string_equal(format_bytes(300e15, buf, sizeof(buf)), "266 PiB");
	assert_string_equal(format_bytes(0x1p64, buf, sizeof(buf)), "16.0 EiB");
	assert_string_equal(format_count(7, buf, sizeof(buf)), "7");
	assert_string_equal(format_count(12345, buf, sizeof(buf)), "12.3k");
	assert_string_equal(format_count(4560000, buf, sizeof(buf)), "4.56M");
	assert_string_equal(format_duration(999, buf, sizeof(buf)), "999 ns");
	assert_string_equal(format_duration(350000000, buf, sizeof(buf)), "350 ms");
	assert_string_equal(format_duration(999700, buf, sizeof(buf)), "1 ms");
	assert_string_equal(format_duration(999700000, buf, sizeof(buf)), "1.0 s");
	assert_string_equal(format_duration(1200000000, buf, sizeof(buf)), "1.2 s");
	assert_string_equal(format_duration(130000000000, buf, sizeof(buf)), "2m 10s");
	assert_string_equal(format_duration(3720000000000, buf, sizeof(buf)), "1h 02m");
	assert_string_equal(format_percent(0.53, buf, sizeof(buf)), "53");
	assert_string_equal(format_percent(0.0906, buf, sizeof(buf)), "9.1");
	assert_string_equal(format_percent(0.0038, buf, sizeof(buf)), "0.38");
	assert_string_equal(format_percent(1e-6, buf, sizeof(buf)), "0");
	/* never past the buffer */
	assert_string_equal(format_bytes(12.3 * 1048576, buf, 4), "12.");
}

RUN_TESTS()
