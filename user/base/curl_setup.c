/* SPDX-License-Identifier: MIT */
/* curl_setup.c - see curl_setup.h. */
#include "base/curl_setup.h"

static bool knows_ca_file(void)
{
	return curl_version_info(CURLVERSION_NOW)->cainfo;
}

bool curl_has_authorities(void)
{
	return knows_ca_file() || ca_file_find();
}

CURLcode curl_setup(CURL *e, bool tls_only, const char *ca_file, char *error)
{
	CURLcode rc = CURLE_OK;

	if (!ca_file && !knows_ca_file())
		ca_file = ca_file_find();
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

/* One file for each distribution. Folders of hashed links are left out: where there is such
 * a folder there is a file. */
static const char *const places[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Alpine, Arch, Gentoo */
	"/etc/pki/tls/certs/ca-bundle.crt", /* RHEL, Fedora, Amazon Linux */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the same, where the link is gone */
	"/etc/ssl/ca-bundle.pem", /* SUSE */
	"/etc/ssl/cert.pem", /* Alpine without its package of certificates */
	"/var/lib/ca-certificates/ca-bundle.pem", /* SUSE */
};

const char *ca_file_find(void)
{
	const char *named = getenv("SSL_CERT_FILE");

	if (named && *named)
		return named;
	for (size_t i = 0; i < ARRAY_CNT(places); i++)
		if (!access(places[i], R_OK))
			return places[i];
	return NULL;
}
