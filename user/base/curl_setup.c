/* SPDX-License-Identifier: MIT */
/* curl_setup.c - see curl_setup.h. */
#include "base/curl_setup.h"

#include "base/ca_file.h"

const char *curl_setup_ca_file(void)
{
	return curl_version_info(CURLVERSION_NOW)->cainfo ? NULL : ca_file_find();
}

CURLcode curl_setup(CURL *e, bool tls_only, const char *ca_file, char *error)
{
	CURLcode rc = CURLE_OK;

	if (!ca_file)
		ca_file = curl_setup_ca_file();
#if LIBCURL_VERSION_NUM >= 0x075500 /* 7.85 */
	CURL_SET(rc, e, CURLOPT_PROTOCOLS_STR, tls_only ? "https" : "http,https");
	CURL_SET(rc, e, CURLOPT_REDIR_PROTOCOLS_STR, tls_only ? "https" : "http,https");
#else
	const long protocols = tls_only ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS;

	CURL_SET(rc, e, CURLOPT_PROTOCOLS, protocols);
	CURL_SET(rc, e, CURLOPT_REDIR_PROTOCOLS, protocols);
#endif
	CURL_SET(rc, e, CURLOPT_NOSIGNAL, 1L);
	CURL_SET(rc, e, CURLOPT_USERAGENT, "heaptap/" HEAPTAP_VERSION);
	CURL_SET(rc, e, CURLOPT_ERRORBUFFER, error);
	if (ca_file)
		CURL_SET(rc, e, CURLOPT_CAINFO, ca_file);
	return rc;
}

CURLcode curl_setup_token(CURL *e, const char *token)
{
	CURLcode rc = CURLE_OK;

	CURL_SET(rc, e, CURLOPT_NOPROXY, "*");
	CURL_SET(rc, e, CURLOPT_FOLLOWLOCATION, 0L);
	if (token) {
		CURL_SET(rc, e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		CURL_SET(rc, e, CURLOPT_XOAUTH2_BEARER, token);
	}
	return rc;
}
