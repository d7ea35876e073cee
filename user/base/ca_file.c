/* SPDX-License-Identifier: MIT */
/* ca_file.c - see ca_file.h. */
#include "base/ca_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

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
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!access(places[i], R_OK))
			return places[i];
	return NULL;
}
