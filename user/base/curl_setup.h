/* SPDX-License-Identifier: MIT */
/* curl_setup.h - settings that all our requests to HTTP servers have in common. */
#ifndef HT_BASE_CURL_SETUP_H
#define HT_BASE_CURL_SETUP_H

#include <curl/curl.h>

#include "base/std.h"

/* if (rc == CURLE_OK) rc = curl_easy_setopt(e, ...): so rc tells the first option that failed. */
#define CURL_SET(rc, e, option, value)                                   \
	do {                                                             \
		if ((rc) == CURLE_OK)                                    \
			(rc) = curl_easy_setopt((e), (option), (value)); \
	} while (0)

/*
 * Call after curl_easy_reset(). Only HTTP (tls_only: over TLS), whatever an address or a server says; no
 * signals; our user agent. error: CURL_ERROR_SIZE bytes for the text. ca_file: trusted certificates, NULL:
 * those that libcurl knows itself, else ca_file_find().
 */
CURLcode curl_setup(CURL *e, bool tls_only, const char *ca_file, char *error);
/* false: this machine trusts nobody. */
bool curl_has_authorities(void);

/*
 * The certificates of the authorities that this machine trusts. For a libcurl whose build did not set where
 * they are, as in the one static executable, which runs on any distribution.
 */

/* Return SSL_CERT_FILE, else the first readable place of some distribution; NULL: there is none. */
const char *ca_file_find(void);

#endif
