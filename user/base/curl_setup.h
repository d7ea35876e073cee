/* SPDX-License-Identifier: MIT */
/* curl_setup.h - what every request of ours to an HTTP server has in common. */
#ifndef HT_BASE_CURL_SETUP_H
#define HT_BASE_CURL_SETUP_H

#include <curl/curl.h>
#include <stdbool.h>

/* if (rc == CURLE_OK) rc = curl_easy_setopt(e, ...): the first thing that is not to be had is what is told. */
#define CURL_SET(rc, e, option, value)                                   \
	do {                                                             \
		if ((rc) == CURLE_OK)                                    \
			(rc) = curl_easy_setopt((e), (option), (value)); \
	} while (0)

/*
 * After curl_easy_reset(): nothing but HTTP (tls_only: over TLS), whatever an address or a server says; no signals; who
 * we are; error: CURL_ERROR_SIZE bytes, for the words; ca_file: who is trusted, NULL: as curl_setup_ca_file() says.
 */
CURLcode curl_setup(CURL *e, bool tls_only, const char *ca_file, char *error);
/* NULL: libcurl knows by itself, or nobody is trusted on this machine. */
const char *curl_setup_ca_file(void);
/* A token for that server alone: no proxy sees it, and redirections are not followed. NULL: none. */
CURLcode curl_setup_token(CURL *e, const char *token);

#endif
