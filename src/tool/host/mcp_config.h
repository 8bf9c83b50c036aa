/* One entry of "mcpServers": {"command","args","env","cwd"} or {"url","headers","type"}. */
#ifndef TOOL_HOST_MCP_CONFIG_H
#define TOOL_HOST_MCP_CONFIG_H

#include <jansson.h>

#include "base/err.h"
#include "net/http.h"

#define MCP_ALIAS_MAX 32

struct secrets;

struct mcp_config {
    char alias[MCP_ALIAS_MAX + 1]; /* a good name */
    char **argv;    /* NULL: by HTTP */
    char **env;     /* "K=V", as configured */
    char *cwd;      /* or NULL */
    char *url;      /* NULL: by stdio */
    char **headers; /* "name: value" */
    enum net_reach reach;
    json_t *wishes; /* "tools", or NULL */
};

/* `${secret:NAME}` stands for a secret, `${NAME}` and `${NAME:-text}` for a variable of the host's
 * environment. Members that only other clients know are ignored. A relative "cwd" begins at the
 * folder of `path`, the absolute path of the file. 0, or -1 with ERR_INPUT. */
int mcp_config_read(const char *alias, const json_t *server, const char *path,
                    const struct secrets *secrets, struct mcp_config *out, struct err *err);
void mcp_config_done(struct mcp_config *config);

#endif
