/* Which revision of MCP a message follows, and what a modern one must say. Pure; runs in every
 * process that serves MCP. */
#include "mcp/era.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/own.h"

static const char *const legacy[] = { MCP_LATEST_LEGACY, "2025-06-18", MCP_BATCH_VERSION };

bool mcp_era_is_legacy_version(const char *version)
{
    for (size_t i = 0; version && i < array_len(legacy); i++)
        if (strcmp(version, legacy[i]) == 0)
            return true;
    return false;
}

const char *mcp_era_version(const char *asked)
{
    for (size_t i = 0; asked && i < array_len(legacy); i++)
        if (strcmp(asked, legacy[i]) == 0)
            return legacy[i];
    return legacy[0];
}

json_t *mcp_era_supported(void)
{
    return json_pack("[s]", MCP_MODERN_VERSION);
}

/* A date of the modern era, known or not. */
static bool is_modern_version(struct str version)
{
    static const char form[] = "dddd-dd-dd";
    if (version.len != sizeof form - 1)
        return false;
    for (size_t i = 0; i < version.len; i++)
        if (form[i] == 'd' ? version.at[i] < '0' || version.at[i] > '9' : version.at[i] != '-')
            return false;
    return memcmp(version.at, MCP_MODERN_VERSION, version.len) >= 0;
}

enum mcp_era mcp_era_of(const struct mcp_message *message, const struct mcp_headers *headers)
{
    if (json_object_get(message->meta, MCP_META "protocolVersion") ||
        json_object_get(message->meta, MCP_META "clientCapabilities"))
        return MCP_MODERN;
    if (headers && headers->version && is_modern_version(str_trim(str_of(headers->version))))
        return MCP_MODERN;
    /* Only modern clients know it; without _meta it is told what it lacks. */
    return message->method && strcmp(message->method, "server/discover") == 0 ? MCP_MODERN
                                                                              : MCP_LEGACY;
}

/* --- what a modern request must say --- */

/* The member of params that Mcp-Name repeats. */
static const struct {
    const char *method, *member;
} named[] = {
    { "tools/call", "name" },
    { "resources/read", "uri" },
    { "prompts/get", "name" },
};

/* A header's value, decoded where it is "=?base64?...?="; heap. NULL: it is not base64. */
static char *value_of(const char *header)
{
    static const struct str begin = { "=?base64?", 9 }, end = { "?=", 2 };
    struct str text = str_trim(str_of(header));
    size_t len = 0;
    if (text.len < begin.len + end.len || memcmp(text.at, begin.at, begin.len) != 0 ||
        !str_ends(text, end))
        return buf_strdup(text);
    struct str coded = { text.at + begin.len, text.len - begin.len - end.len };
    char *bytes = base64_decode_exact(coded, &len);
    if (bytes && memchr(bytes, 0, len)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static int check_header(const char *name, const char *header, const char *value,
                        struct mcp_fault *fault)
{
    if (!header)
        return mcp_fault_set(fault, MCP_E_HEADER, 400, "header '%s' is missing", name);
    own_str said = value_of(header);
    if (said && value && strcmp(said, value) == 0)
        return 0;
    return mcp_fault_set(fault, MCP_E_HEADER, 400,
                         "header '%s' is not what the message says: %.80s", name,
                         value ? value : "nothing");
}

static int check_headers(const struct mcp_message *message, const struct mcp_headers *headers,
                         const char *version, struct mcp_fault *fault)
{
    if (check_header("MCP-Protocol-Version", headers->version, version, fault) < 0 ||
        check_header("Mcp-Method", headers->method, message->method, fault) < 0)
        return -1;
    for (size_t i = 0; i < array_len(named); i++)
        if (strcmp(message->method, named[i].method) == 0)
            return check_header(
                "Mcp-Name", headers->name,
                json_string_value(json_object_get(message->params, named[i].member)), fault);
    return 0;
}

int mcp_era_check(const struct mcp_message *message, const struct mcp_headers *headers,
                  struct mcp_fault *fault)
{
    const char *version = json_string_value(
        json_object_get(message->meta, MCP_META "protocolVersion"));
    if (!version)
        return mcp_fault_set(fault, MCP_E_PARAMS, 400,
                             "'params._meta' has no " MCP_META "protocolVersion");
    if (!json_is_object(json_object_get(message->meta, MCP_META "clientCapabilities")))
        return mcp_fault_set(fault, MCP_E_PARAMS, 400,
                             "'params._meta' has no object " MCP_META "clientCapabilities");
    if (headers && check_headers(message, headers, version, fault) < 0)
        return -1;
    if (strcmp(version, MCP_MODERN_VERSION) == 0)
        return 0;
    mcp_fault_set(fault, MCP_E_VERSION, 400, "version '%.40s' is not supported", version);
    fault->data = json_pack("{s:o, s:s}", "supported", mcp_era_supported(), "requested", version);
    return -1;
}
