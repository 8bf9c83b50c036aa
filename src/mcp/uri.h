/* The names of files as resources: cupel://OWNER/PATH, where OWNER is a session or a run. Pure. */
#ifndef MCP_URI_H
#define MCP_URI_H

#include "base/str.h"

#define MCP_URI_MAX 4096
#define MCP_OWNER_ROOM 40

/* Heap. */
char *mcp_uri_make(const char *owner, struct str path);
/* The parts of a name; *out_path is heap. -1: it is none of ours. */
int mcp_uri_read(const char *uri, char out_owner[MCP_OWNER_ROOM], char **out_path);

#endif
