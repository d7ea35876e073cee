/* SPDX-License-Identifier: MIT */
/*
 * inside.c - linked into the one executable of `make dist`, and only there: it loads nothing.
 *
 * A static program can load a shared object only of the very glibc that it was linked with; what it loads of
 * another one crashes it. Three libraries would, where the machine's configuration says so:
 *   glibc    nsswitch.conf names modules (sss, mdns, systemd, ...). Two are built in, files and dns, and only
 *            these are asked here: users of LDAP have numbers only, names that mDNS knows are not found.
 *   OpenSSL  openssl.cnf may name providers and engines: it is not read, and what is built in serves.
 *   whoever else calls dlopen(): there is none.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <nss.h>
#include <openssl/crypto.h>
#include <stddef.h>
#include <stdlib.h>

static void __attribute__((constructor)) stay_inside(void)
{
	static const char *const lookups[][2] = {
		{ "hosts", "files dns" }, { "passwd", "files" },    { "group", "files" },
		{ "services", "files" },  { "protocols", "files" }, { "networks", "files dns" },
	};

	/* It fails where a database is unknown or memory is out, and then names are not found. */
	for (size_t i = 0; i < sizeof(lookups) / sizeof(*lookups); i++)
		if (__nss_configure_lookup(lookups[i][0], lookups[i][1]))
			abort();
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

/* In place of libc's, which are not linked in then. */
void *dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

char *dlerror(void)
{
	static char text[] = "a static program loads nothing";

	return text;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return -1;
}

int dladdr(const void *addr, Dl_info *info)
{
	(void)addr;
	(void)info;
	return 0;
}
