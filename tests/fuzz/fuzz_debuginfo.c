/* SPDX-License-Identifier: MIT */
/* fuzz_debuginfo.c - what a server may answer to the calls for debug information. */
#include "fuzz.h"

#include "serve/debuginfo_upload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct debuginfo_instructions how;
	struct push_grpc grpc = { 0 };
	struct push_answer answer;
	uint64_t file_bytes;
	bool is_wanted;

	debuginfo_decode_should(data, bytes, &is_wanted);
	debuginfo_decode_uploaded(data, bytes, &file_bytes);
	if (!debuginfo_decode_instructions(data, bytes, &how) &&
	    (strlen(how.upload_id) >= sizeof(how.upload_id) || strlen(how.url) >= sizeof(how.url) ||
	     (how.way == DEBUGINFO_PUT && !how.url[0])))
		abort();
	push_parca_header(&grpc, (const char *)data, bytes);
	push_parca_answer(&grpc, 200, &answer);
	if (strlen(answer.text) >= sizeof(answer.text))
		abort();
	return 0;
}
