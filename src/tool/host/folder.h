/* The folder of tool files: each *.json in it is one source. Read again when the folder, one of its
 * files or the secrets' file has changed. Runs in the tool host's process; one thread at a time. */
#ifndef TOOL_HOST_FOLDER_H
#define TOOL_HOST_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tool/host/live.h"

#define FOLDER_FILES_MAX 1024
#define FOLDER_FILE_BYTES_MAX ((size_t)1 << 20)

struct folder;

/* Any may be NULL. mcp_path: of one more file, outside of the folder. */
struct folder *folder_new(const char *path, const char *mcp_path, const char *secrets_path);
/* Has anything changed since the last folder_read? Looks at times and sizes alone. */
bool folder_has_changed(const struct folder *folder);
/* Read everything again. */
void folder_read(struct folder *folder);

/* As of the last folder_read. */
size_t folder_count(const struct folder *folder);
struct live *folder_at(const struct folder *folder, size_t i);
const json_t *folder_faults(const struct folder *folder);
/* The secrets, for sources that are in no folder. */
struct secrets *folder_secrets(const struct folder *folder);

#endif
