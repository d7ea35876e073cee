/* SPDX-License-Identifier: MIT */
/* fuzz_http.c - what heaptap itself reads of a request: path, arguments, body, and two headers. */
#include "fuzz.h"

#include "base/err.h"
#include "http/endpoints.h"
#include "http/http.h"

static void check_request(const struct result_request *r)
{
	if (r->pid < 0 || r->seconds > ENDPOINT_SECONDS_CAP)
		abort();
}

static void read_request(char *path)
{
	struct result_request r;
	char *args = strchr(path, '?'), *arg;
	struct err why;

	if (args)
		*args++ = '\0';
	if (endpoint_parse_path(path, &r))
		return;
	check_request(&r);
	while ((arg = strsep(&args, "&"))) {
		char *value = strchr(arg, '=');

		if (value)
			*value++ = '\0';
		if (endpoint_set_arg(&r, arg, value ? value : "", &why) && !why.text[0])
			abort();
		check_request(&r);
	}
	endpoint_check(&r, &why);
}

static void read_body(const char *text, size_t bytes)
{
	struct endpoint_addrs addrs;
	struct err why = { 0 };

	if (endpoint_parse_addrs(text, bytes, &addrs, &why))
		return;
	if (addrs.addr_cnt > bytes)
		abort();
	free(addrs.addrs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char token[] = "0123456789abcdef";
	char *text = fuzz_text(data, bytes), host[LISTEN_HOST_BYTES];
	const char *port;

	read_body(text, bytes);
	/* With the token in it, or it would be a guess. */
	if (token_authorizes(text, token) && !strstr(text, token))
		abort();
	listen_is_own_name(text, "box");
	if (!listen_parse(text, host, &port) && !*host)
		abort();
	read_request(text);
	free(text);
	return 0;
}
