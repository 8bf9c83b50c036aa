/* Credentials for registries in the file that docker login and podman login write. */
#ifndef IMAGE_PULL_AUTH_FILE_H
#define IMAGE_PULL_AUTH_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "image/pull/ref.h"

#define PULL_AUTH_FILE_MAX ((size_t)1 << 20)
#define PULL_BASIC_ROOM 4096

/* Reads the caller's file: $REGISTRY_AUTH_FILE, which must be there, else
 * $DOCKER_CONFIG/config.json or ~/.docker/config.json, which may be missing. `out_path` names the
 * file, NULL: there is none; the caller frees it. Called before rights are dropped. */
int pull_auth_file_read(struct buf *out, char **out_path, struct err *err);
/* The base64 of "user:password" for the reference's registry, "" if the file has none. The most
 * specific entry wins. ERR_INPUT for an entry that only a credential helper can read. Pure. */
int pull_auth_find(struct str file, const struct pull_ref *ref, char out[PULL_BASIC_ROOM],
                   struct err *err);

#endif
