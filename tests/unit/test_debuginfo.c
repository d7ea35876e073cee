/* SPDX-License-Identifier: MIT */
/* test_debuginfo.c - the bytes of Parca's debug information calls, and profiles without names. */
#include "unit.h"

#include <sys/mman.h>

#include "debuginfo.pb-c.h"
#include "profile/profile.h"
#include "profile/profile_copy.h"
#include "serve/debuginfo_upload.h"

typedef Parca__Debuginfo__V1alpha1__ShouldInitiateUploadRequest ShouldPb;
typedef Parca__Debuginfo__V1alpha1__ShouldInitiateUploadResponse ShouldAnswerPb;
typedef Parca__Debuginfo__V1alpha1__InitiateUploadRequest InitiatePb;
typedef Parca__Debuginfo__V1alpha1__InitiateUploadResponse InitiateAnswerPb;
typedef Parca__Debuginfo__V1alpha1__UploadInstructions InstructionsPb;
typedef Parca__Debuginfo__V1alpha1__UploadRequest UploadPb;

#define SHOULD(n) parca__debuginfo__v1alpha1__should_initiate_upload_request__##n
#define INITIATE(n) parca__debuginfo__v1alpha1__initiate_upload_request__##n
#define UPLOAD(n) parca__debuginfo__v1alpha1__upload_request__##n

static size_t frame_length(const uint8_t *p)
{
	return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

static size_t frame(const ProtobufCMessage *m, uint8_t *out)
{
	size_t n = protobuf_c_message_pack(m, out + PUSH_PARCA_FRAME_BYTES);

	push_parca_frame_head(n, out);
	return PUSH_PARCA_FRAME_BYTES + n;
}

TEST(requests)
{
	InitiatePb *initiate;
	ShouldPb *should;
	uint8_t *bytes;
	size_t n;

	assert_int_equal(debuginfo_encode_should("abcd", true, &bytes, &n), 0);
	assert_int_equal(frame_length(bytes), n - PUSH_PARCA_FRAME_BYTES);
	should = SHOULD(unpack)(NULL, n - 5, bytes + 5);
	assert_non_null(should);
	assert_string_equal(should->build_id, "abcd");
	assert_true(should->force);
	assert_int_equal(should->build_id_type, 1);
	SHOULD(free_unpacked)(should, NULL);
	free(bytes);

	assert_int_equal(debuginfo_encode_initiate("abcd", false, 5000000000ULL, 0x12, &bytes, &n),
			 0);
	initiate = INITIATE(unpack)(NULL, n - 5, bytes + 5);
	assert_non_null(initiate);
	assert_int_equal(initiate->size, 5000000000LL);
	assert_string_equal(initiate->hash, "0000000000000012");
	assert_false(initiate->force);
	INITIATE(free_unpacked)(initiate, NULL);
	free(bytes);
}

TEST(answers)
{
	ShouldAnswerPb should = PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;
	InitiateAnswerPb initiate = PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_RESPONSE__INIT;
	InstructionsPb how = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__INIT;
	struct debuginfo_instructions got;
	uint8_t bytes[8192];
	char longer[DEBUGINFO_URL_BYTES + 1];
	bool is_wanted = false;
	size_t n;

	should.should_initiate_upload = true;
	should.reason = (char *)"never seen";
	n = frame(&should.base, bytes);
	assert_int_equal(debuginfo_decode_should(bytes, n, &is_wanted), 0);
	assert_true(is_wanted);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(debuginfo_decode_should(bytes, i, &is_wanted), -EBADMSG);
	bytes[0] = 1; /* compressed, which was not offered */
	assert_int_equal(debuginfo_decode_should(bytes, n, &is_wanted), -EBADMSG);

	n = frame(&initiate.base, bytes);
	assert_int_equal(debuginfo_decode_instructions(bytes, n, &got), -EBADMSG);
	initiate.upload_instructions = &how;
	how.upload_id = (char *)"id";
	n = frame(&initiate.base, bytes);
	assert_int_equal(debuginfo_decode_instructions(bytes, n, &got), -EBADMSG);
	how.upload_strategy = 1;
	n = frame(&initiate.base, bytes);
	assert_int_equal(debuginfo_decode_instructions(bytes, n, &got), 0);
	assert_int_equal(got.way, DEBUGINFO_STREAM);
	assert_string_equal(got.upload_id, "id");
	how.upload_strategy = 2;
	n = frame(&initiate.base, bytes);
	assert_int_equal(debuginfo_decode_instructions(bytes, n, &got), -EBADMSG); /* no address */
	how.signed_url = (char *)"http://localhost/put?x=1";
	n = frame(&initiate.base, bytes);
	assert_int_equal(debuginfo_decode_instructions(bytes, n, &got), 0);
	assert_int_equal(got.way, DEBUGINFO_PUT);
	assert_string_equal(got.url, "http://localhost/put?x=1");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	how.signed_url = longer;
	n = frame(&initiate.base, bytes);
	assert_int_equal(debuginfo_decode_instructions(bytes, n, &got), -EBADMSG);
}

/* A file of more than two chunks, whatever the pieces that it is asked for in. */
TEST(a_stream_is_messages_of_the_file)
{
	static uint8_t names[700 * 1024];
	const struct debuginfo_instructions how = { .way = DEBUGINFO_STREAM, .upload_id = "u1" };
	size_t at = 0, file_at = 0, message_cnt = 0, total;
	struct debuginfo_stream s;
	struct debuginfo_file from;
	uint8_t *file = unit_keep(malloc(sizeof(names)), free), *stream;
	int fd = memfd_create("reduced", MFD_CLOEXEC);

	for (size_t i = 0; i < sizeof(names); i++)
		names[i] = (uint8_t)(i * 7 + i / 251);
	memcpy(file, names, sizeof(names));
	assert_int_equal(write(fd, names, sizeof(names)), sizeof(names));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	from = (struct debuginfo_file){ .fd = fd, .bytes = sizeof(names) };
	assert_int_equal(debuginfo_stream_init(&s, &from, "abcd", &how), 0);
	total = debuginfo_stream_bytes(&s);
	stream = malloc(total);
	while (at < total) {
		size_t step = at % 3 ? 1000 : 65536;
		ssize_t n = debuginfo_stream_read(&s, stream + at,
						  step < total - at ? step : total - at);

		assert_true(n > 0);
		at += (size_t)n;
	}
	assert_int_equal(debuginfo_stream_read(&s, names, sizeof(names)), 0);
	for (at = 0; at < total; message_cnt++) {
		size_t n = frame_length(stream + at);
		UploadPb *message = UPLOAD(unpack)(NULL, n, stream + at + 5);

		assert_non_null(message);
		if (!message_cnt) {
			assert_int_equal(message->data_case,
					 PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_INFO);
			assert_string_equal(message->info->build_id, "abcd");
			assert_string_equal(message->info->upload_id, "u1");
		} else {
			assert_int_equal(
				message->data_case,
				PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_CHUNK_DATA);
			assert_true(message->chunk_data.len <= DEBUGINFO_CHUNK_BYTES);
			assert_memory_equal(message->chunk_data.data, file + file_at,
					    message->chunk_data.len);
			file_at += message->chunk_data.len;
		}
		UPLOAD(free_unpacked)(message, NULL);
		at += 5 + n;
	}
	assert_int_equal(file_at, sizeof(names));
	assert_int_equal(message_cnt, 1 + 3);
	debuginfo_stream_release(&s);
	close(fd);
	free(stream);
}

/* Who writes the file may end, or stop. */
TEST(a_stream_waits_for_a_moment)
{
	const struct debuginfo_instructions how = { .way = DEBUGINFO_PUT };
	struct debuginfo_file from = { .bytes = 10 };
	struct debuginfo_stream s;
	char buf[16];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	from.fd = fds[0];
	assert_int_equal(debuginfo_stream_init(&s, &from, "abcd", &how), 0);
	assert_int_equal(write(fds[1], "123456", 6), 6);
	assert_int_equal(debuginfo_stream_read(&s, buf, 4), 4);
	assert_int_equal(debuginfo_stream_read(&s, buf, 2), 2);
	assert_int_equal(debuginfo_stream_read(&s, buf, sizeof(buf)), -ETIMEDOUT);
	close(fds[1]);
	assert_int_equal(debuginfo_stream_read(&s, buf, sizeof(buf)), -EIO);
	debuginfo_stream_release(&s);
	close(fds[0]);
}

static bool is_first(const void *ctx, const char *build_id)
{
	return !strcmp(build_id, ctx);
}

TEST(names_that_the_server_knows_are_left_out)
{
	struct profile_mapping m = { .has_functions = true, .has_line_numbers = true };
	struct profile_location loc = { .line_cnt = 1 };
	struct profile_strip bare = { 0 };
	struct profile_line line = { 0 };
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	m.build_id_str = profile_str(p, "first");
	assert_int_equal(vec_push(&p->mappings, m), 0);
	m.build_id_str = profile_str(p, "second");
	assert_int_equal(vec_push(&p->mappings, m), 0);
	m.build_id_str = 0;
	assert_int_equal(vec_push(&p->mappings, m), 0);
	assert_int_equal(vec_push(&p->lines, line), 0);
	for (uint32_t i = 0; i < 3; i++) {
		loc.mapping = i;
		assert_int_equal(vec_push(&p->locations, loc), 0);
	}
	loc.mapping = HT_NO_INDEX;
	assert_int_equal(vec_push(&p->locations, loc), 0);

	assert_int_equal(profile_strip_begin(p, is_first, "first", &bare), 0);
	assert_int_equal(p->locations.data[0].line_cnt, 0);
	assert_false(p->mappings.data[0].has_functions);
	assert_false(p->mappings.data[0].has_line_numbers);
	for (size_t i = 1; i < 4; i++)
		assert_int_equal(p->locations.data[i].line_cnt, 1);
	assert_true(p->mappings.data[1].has_functions);
	profile_strip_end(p, &bare);
	assert_int_equal(p->locations.data[0].line_cnt, 1);
	assert_true(p->mappings.data[0].has_functions);
	profile_strip_end(p, &bare); /* nothing is nothing */
	profile_free(p);
}

RUN_TESTS()
