/* SPDX-License-Identifier: MIT */
/* test_report_before.c - blocks that are older than a recording: said only where they are certain, in all and by class. */
#include "made_rows.h"

/* What is in the heap and not in the recording is older, but only where both are of the same blocks. */
TEST(test_before)
{
	static const struct {
		const char *what;
		bool is_known;
	} cases[] = {
		{ "nothing", true },  { "lossy", false },      { "since", false },
		{ "started", false }, { "several", false },    { "unseen", false },
		{ "caches", false },  { "not proved", false }, { "no end", false },
		{ "no rate", false }, /* an older file */
	};

	for (int i = 0; i < (int)(sizeof(cases) / sizeof(*cases)); i++) {
		struct resident_reading begin = first(), end = last();
		struct profile_sample *s;
		struct profile *p;
		char *text;

		end.live_cnt = 3000;
		end.live_bytes = 3000 * 1008;
		end.hit_cnt = 1500;
		end.late_hit_cnt = 20;
		end.coarsest_rate_bytes = i != 9;
		end.is_counted = i != 6;
		end.classes[0] = (struct resident_reading_class){ .from_bytes = 985,
								  .to_bytes = 1000,
								  .live_cnt = 2500,
								  .live_bytes = 2500 * 1008,
								  .recorded = { 1000, 0 } };
		end.classes[1] = (struct resident_reading_class){ .name = "shop::Order",
								  .live_cnt = 500,
								  .live_bytes = 500 * 112 };
		/* as many as calls were made meanwhile: it is not sure that one is older */
		end.classes[2] = (struct resident_reading_class){ .name = "shop::Late",
								  .live_cnt = 20,
								  .live_bytes = 20 * 64 };
		/* a sum of samples */
		end.classes[3] = (struct resident_reading_class){ .name = "shop::Sampled",
								  .live_cnt = 500,
								  .live_bytes = 500 * 64,
								  .recorded = { 100, 10000 } };
		end.class_cnt = 4;
		end.is_proved = i != 7;
		if (i == 8)
			end = unknown("denied");
		p = profile_of(begin, end);
		/* 1500 allocated, 1000 of them in use, each of 1000 bytes */
		assert_int_equal(profile_add_sample(p, NULL, 0,
						    (int64_t[]){ 1500, 1500000, 1000, 1000000 },
						    NULL, 0, &s),
				 0);
		s->has_error = true;
		s->inuse_samples = 1000;
		s->alloc_samples = 1500;
		p->recording.is_lossy = i == 1;
		p->recording.inuse = i == 2 ? RECORDING_INUSE_SINCE : RECORDING_INUSE_ALL;
		p->recording.is_from_start = i == 3;
		p->recording.process_cnt = i == 4 ? 2 : 1;
		if (i == 5)
			assert_int_equal(profile_comment(p, "not seen: /usr/lib/libx.so"), 0);
		text = report_of(p, REPORT_JSON);
		if (!cases[i].is_known == !strstr(text, "\"allocated_before\":null"))
			fail_msg("%s: %s", cases[i].what, text);
		/* 8 to 48 bytes for each block in use and for each of 20 calls meanwhile */
		if (cases[i].is_known)
			assert_says(
				text,
				"\"allocated_before\":{\"objects\":2000,\"objects_low\":1980,"
				"\"objects_high\":2020,\"bytes\":2008000,\"bytes_low\":1955040,"
				"\"bytes_high\":2036000,\"classes\":[\n"
				"{\"class\":null,\"from_bytes\":985,\"to_bytes\":1000,\"objects\":1500,"
				"\"objects_low\":1480,\"objects_high\":1520,\"bytes\":1512000},\n"
				"{\"class\":\"shop::Order\",\"from_bytes\":null,\"to_bytes\":null,"
				"\"objects\":500,\"objects_low\":480,\"objects_high\":500,\"bytes\":56000},\n"
				"{\"class\":\"shop::Sampled\",\"from_bytes\":null,\"to_bytes\":null,"
				"\"objects\":400,\"objects_low\":80,\"objects_high\":500,\"bytes\":25600}]}");
		text = report_of(p, REPORT_TEXT);
		assert_int_equal(
			!!strstr(
				text,
				"\nAllocated before the recording, still live: 2.00k blocks, "
				"1.91 MiB (1.86 MiB to 1.94 MiB)\n"
				"  by size: 985 to 1000 bytes 1.50k (1.44 MiB)\n"
				"  by C++ class: shop::Order 500 (54.7 KiB), shop::Sampled 400 (25.0 KiB)\n"),
			cases[i].is_known);
	}
}

/* Samples of small blocks are few, so a recording may have many of them without one. */
TEST(test_before_sampled)
{
	struct resident_reading begin = first(), end = last();
	struct profile *p;
	char *text;

	end.is_counted = true;
	end.live_cnt = 63520;
	end.live_bytes = 60000 * 32 + 3000 * 5024 + 520 * 512;
	end.hit_cnt = 61000; /* all calls */
	end.coarsest_rate_bytes = 65536;
	end.classes[0] = (struct resident_reading_class){
		.from_bytes = 5001, .to_bytes = 5016, .live_cnt = 3000, .live_bytes = 3000 * 5024
	};
	end.classes[1] = (struct resident_reading_class){ .to_bytes = 24,
							  .live_cnt = 60000,
							  .live_bytes = 60000 * 32 };
	/* of a thousand such sizes, some have not one sample */
	end.classes[2] = (struct resident_reading_class){
		.from_bytes = 489, .to_bytes = 504, .live_cnt = 520, .live_bytes = 520 * 512
	};
	end.classes[3] = (struct resident_reading_class){
		.name = "shop::Big", .from_bytes = 5001, .live_cnt = 3000, .live_bytes = 3000 * 5024
	};
	end.classes[4] = (struct resident_reading_class){
		.name = "shop::Small", .from_bytes = 9, .live_cnt = 6000, .live_bytes = 6000 * 32
	};
	end.class_cnt = 5;
	p = profile_of(begin, end);
	p->recording.inuse = RECORDING_INUSE_ALL;
	p->period = 65536;
	text = report_of(p, REPORT_JSON);
	if (!strstr(text, "{\"class\":null,\"from_bytes\":5001,\"to_bytes\":5016,\"objects\":3000,"
			  "\"objects_low\":2905,\"objects_high\":3000,\"bytes\":15072000},\n"
			  "{\"class\":\"shop::Big\",\"from_bytes\":null,\"to_bytes\":null,"
			  "\"objects\":3000,\"objects_low\":2905,\"objects_high\":3000,"
			  "\"bytes\":15072000}]}"))
		fail_msg("%s", text);
	/* the sum is as sure as its parts, and not more than there is */
	if (!strstr(text, "\"allocated_before\":{\"objects\":63520,\"objects_low\":2905,"
			  "\"objects_high\":63520,"))
		fail_msg("%s", text);
}

/* Samples of large blocks say nothing of small ones: these may be older, or the recording's. */
TEST(test_before_unseen)
{
	static const struct {
		const char *what;
		uint64_t hit_cnt, rate_bytes;
		int64_t period;
		const char *low, *text;
	} cases[] = {
		/* 3,000 blocks of 5,000 bytes are older: not more than 7 samples were missed of these */
		{ "samples", 0, 65536, 65536, "\"objects_low\":2905,",
		  "still live: 63.0k blocks (2.90k to 63.0k), 16.3 MiB" },
		{ "calls", 40020, 65536, 65536, "\"objects_low\":23000,",
		  "still live: 63.0k blocks (23.0k to 63.0k), 16.3 MiB" },
		/* the rate became finer */
		{ "a mean rate", 0, 65536, 4096, "\"objects_low\":2905,", "blocks (2.90k to" },
		{ "a fine rate", 0, 4096, 4096, "\"objects_low\":34324,", "blocks (34.3k to" },
		{ "a coarse rate", 0, 4 << 20, 65536, "\"objects_low\":0,",
		  "still live: at most 63.0k blocks," },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct resident_reading begin = first(), end = last();
		struct profile_sample *s;
		struct profile *p;
		char *text;

		end.is_counted = true;
		end.live_cnt = 63020;
		end.live_bytes = 60000 * 32 + 3000 * 5024 + 20 * (MIB + 4096);
		end.mmapped_cnt = 20;
		end.hit_cnt = cases[i].hit_cnt;
		end.coarsest_rate_bytes = cases[i].rate_bytes;
		end.classes[0] = (struct resident_reading_class){
			.to_bytes = 24, .live_cnt = 60000, .live_bytes = 60000 * 32, .is_span = true
		};
		end.classes[1] = (struct resident_reading_class){ .from_bytes = 5001,
								  .to_bytes = 5016,
								  .live_cnt = 3000,
								  .live_bytes = 3000 * 5024,
								  .is_span = true };
		end.classes[2] = (struct resident_reading_class){ .from_bytes = MIB,
								  .to_bytes = 2 * MIB,
								  .live_cnt = 20,
								  .live_bytes = 20 * (MIB + 4096),
								  .recorded = { 20, 0 },
								  .is_span = true };
		end.class_cnt = 3;
		p = profile_of(begin, end);
		assert_int_equal(profile_add_sample(p, NULL, 0,
						    (int64_t[]){ 20, 20 * MIB, 20, 20 * MIB }, NULL,
						    0, &s),
				 0);
		s->has_error = true;
		s->inuse_samples = s->alloc_samples = 20;
		p->recording.inuse = RECORDING_INUSE_ALL;
		p->period = cases[i].period;
		text = report_of(p, REPORT_JSON);
		if (!strstr(text, cases[i].low) ||
		    !strstr(text, "\"allocated_before\":{\"objects\":63000,") ||
		    !strstr(text, "\"objects_high\":63"))
			fail_msg("%s: %s", cases[i].what, text);
		text = report_of(p, REPORT_TEXT);
		if (!strstr(text, cases[i].text))
			fail_msg("%s: %s", cases[i].what, text);
	}
}

RUN_TESTS()
