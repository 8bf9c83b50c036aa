/* Reads an entry of "mcpServers". Runs in the tool host; pure but for the environment. */
#include "tool/host/mcp_config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/define/define.h"
#include "tool/host/foreign.h"
#include "tool/host/http_template.h"
#include "tool/host/source.h"

#define TEXT_MAX 32768
#define WORDS_MAX 250

struct reading {
    const char *path;
    const struct secrets *secrets;
    struct mcp_config *config;
    struct err *err;
};

static int refuse(struct reading *reading, const char *field, const json_t *value,
                  const char *bound)
{
    char shown[160] = "";
    if (value)
        json_brief(value, shown, sizeof shown);
    return err_input(reading->err, field, value ? shown : NULL, bound, "'%s' is %s; it must be %s",
                     field, value ? shown : "missing", bound);
}

/* ---- variables ---- */

/* "NAME" or "NAME:-text". -1 with err for a variable that is not set. */
static int add_variable(struct reading *reading, struct str inside, struct buf *out)
{
    const char *mark = memmem(inside.at, inside.len, ":-", 2);
    struct str name = { inside.at, mark ? (size_t)(mark - inside.at) : inside.len };
    own_str key = buf_strdup(name);
    const char *value = getenv(key);
    if (value && *value)
        return buf_add_text(out, value);
    if (mark)
        return buf_add(out, mark + 2, inside.len - name.len - 2);
    return err_input(reading->err, "", NULL, NULL, "the variable '%.64s' is not set", key);
}

/* Heap, or NULL with err. */
static char *expand(struct reading *reading, const char *text)
{
    own_buf out = BUF_INIT(TEXT_MAX);
    int rc = 0;
    while (*text && rc == 0) {
        const char *end = strncmp(text, "${", 2) == 0 ? strchr(text, '}') : NULL;
        bool secret = strncmp(text, "${secret:", 9) == 0;
        if (end && !secret)
            rc = add_variable(reading, (struct str){ text + 2, (size_t)(end - text) - 2 }, &out);
        else
            rc = buf_add(&out, text, 1);
        text = end && !secret ? end + 1 : text + 1;
    }
    if (rc == 0)
        return secrets_expand(reading->secrets, buf_str(&out).at, reading->err);
    if (reading->err->kind == ERR_NONE)
        err_set(reading->err, ERR_LIMIT, "a text exceeds 32 KiB");
    return NULL;
}

static char *expand_member(struct reading *reading, const char *field, const json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) != strlen(json_string_value(value))) {
        refuse(reading, field, value, "a text");
        return NULL;
    }
    char *text = expand(reading, json_string_value(value));
    if (!text)
        snprintf(reading->err->field, sizeof reading->err->field, "%.90s", field);
    return text;
}

/* ---- stdio ---- */

static int read_words(struct reading *reading, const json_t *server)
{
    struct mcp_config *config = reading->config;
    const json_t *args = json_object_get(server, "args");
    size_t count = json_array_size(args);
    if (args && (!json_is_array(args) || count > WORDS_MAX))
        return refuse(reading, "args", args, "a list of at most 250 texts");
    config->argv = buf_alloc_zero(count + 2, sizeof *config->argv);
    config->argv[0] = expand_member(reading, "command", json_object_get(server, "command"));
    for (size_t i = 0; config->argv[0] && i < count; i++)
        if (!(config->argv[i + 1] = expand_member(reading, "args", json_array_get(args, i))))
            return -1;
    return config->argv[0] ? 0 : -1;
}

/* Pairs as "name=value" or "name: value". */
static int read_pairs(struct reading *reading, const json_t *pairs, const char *field,
                      const char *between, char ***out)
{
    const char *name;
    json_t *value;
    size_t count = 0;
    if (pairs && (!json_is_object(pairs) || json_object_size(pairs) > WORDS_MAX / 2))
        return refuse(reading, field, pairs, "an object of at most 125 texts");
    *out = buf_alloc_zero(json_object_size(pairs) + 1, sizeof **out);
    json_object_foreach ((json_t *)(uintptr_t)pairs, name, value) {
        own_buf line = BUF_INIT(TEXT_MAX);
        own_str text = expand_member(reading, field, value);
        if (!text)
            return -1;
        bool bad = !*name || strpbrk(name, "=:\r\n\t ") || strpbrk(text, "\r\n");
        if (bad || buf_printf(&line, "%s%s%s", name, between, text) < 0)
            return refuse(reading, field, NULL, "an object of names and texts of one line");
        (*out)[count++] = buf_take(&line);
        explicit_bzero(text, strlen(text));
    }
    return 0;
}

static int read_folder(struct reading *reading, const json_t *cwd)
{
    const char *slash = strrchr(reading->path, '/');
    own_buf whole = BUF_INIT(TEXT_MAX);
    own_str given = expand_member(reading, "cwd", cwd);
    if (!given)
        return -1;
    if (*given != '/' && slash)
        buf_printf(&whole, "%.*s/", (int)(slash - reading->path), reading->path);
    if (buf_add_text(&whole, given) < 0)
        return refuse(reading, "cwd", cwd, "shorter");
    reading->config->cwd = buf_take(&whole);
    return 0;
}

static int read_stdio(struct reading *reading, const json_t *server)
{
    const json_t *cwd = json_object_get(server, "cwd");
    if (read_words(reading, server) < 0 ||
        read_pairs(reading, json_object_get(server, "env"), "env", "=", &reading->config->env) < 0)
        return -1;
    return cwd && !json_is_null(cwd) ? read_folder(reading, cwd) : 0;
}

/* ---- HTTP ---- */

/* Has the configuration itself spelled an address of this host or network? A name could mean
 * another address tomorrow. */
static bool is_spelled(const char *url)
{
    struct str origin = http_url_origin(str_of(url));
    char host[64];
    unsigned char address[16];
    const char *at = strstr(url, "://") + 3;
    size_t len = origin.len - (size_t)(at - url);
    bool six = len > 0 && *at == '[';
    size_t end = strcspn(at, six ? "]" : ":/?#");
    end = end < len ? end : len;
    snprintf(host, sizeof host, "%.*s", (int)(six ? end - 1 : end), six ? at + 1 : at);
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, address) == 1 ||
           (six && inet_pton(AF_INET6, host, address) == 1);
}

static int read_http(struct reading *reading, const json_t *server)
{
    struct mcp_config *config = reading->config;
    struct str type = json_get_str(server, "type");
    const json_t *private = json_object_get(server, "private");
    if (str_is(type, "sse"))
        return refuse(reading, "type", json_object_get(server, "type"),
                      "\"http\": the old transport by two endpoints is not supported");
    if (!(config->url = expand_member(reading, "url", json_object_get(server, "url"))) ||
        http_url_check(str_of(config->url), reading->err) < 0 ||
        read_pairs(reading, json_object_get(server, "headers"), "headers", ": ", &config->headers) <
            0)
        return -1;
    if (private && !json_is_boolean(private))
        return refuse(reading, "private", private, "true or false");
    config->reach = json_is_true(private) || (!private && is_spelled(config->url))
                        ? NET_REACH_PRIVATE
                        : NET_REACH_PUBLIC;
    return 0;
}

/* ---- all ---- */

static int read_wishes(struct reading *reading, const json_t *server)
{
    static const char *const fields[] = { "effect", "policy", "caps", "idempotency_key" };
    const json_t *wishes = json_object_get(server, "tools");
    const char *pattern, *name;
    json_t *wish, *value;
    if (!json_is_object(wishes))
        return wishes ? refuse(reading, "tools", wishes, "an object of patterns") : 0;
    json_object_foreach ((json_t *)(uintptr_t)wishes, pattern, wish) {
        if (!json_is_object(wish))
            return refuse(reading, "tools", wish, "an object with effect, policy, caps");
        json_object_foreach (wish, name, value) {
            bool known = false;
            for (size_t i = 0; i < array_len(fields); i++)
                known = known || strcmp(name, fields[i]) == 0;
            if (!known)
                return err_input(reading->err, "tools", NULL,
                                 "effect, policy, caps, idempotency_key",
                                 "'tools' has '%.60s', which is not known", name);
        }
    }
    reading->config->wishes = json_deep_copy(wishes);
    return 0;
}

int mcp_config_read(const char *alias, const json_t *server, const char *path,
                    const struct secrets *secrets, struct mcp_config *out, struct err *err)
{
    struct mcp_config config = { .reach = NET_REACH_PUBLIC };
    struct reading reading = { path, secrets, &config, err };
    char good[TOOL_NAME_MAX + 1];
    foreign_name("", str_of(alias), NULL, good);
    snprintf(config.alias, sizeof config.alias, "%.*s", MCP_ALIAS_MAX, good);
    bool http = json_object_get(server, "url") != NULL;
    int rc;
    if (!json_is_object(server) || http == (json_object_get(server, "command") != NULL))
        rc = refuse(&reading, "mcpServers", NULL, "an object with 'command' or 'url'");
    else
        rc = http ? read_http(&reading, server) : read_stdio(&reading, server);
    if (rc < 0 || read_wishes(&reading, server) < 0) {
        mcp_config_done(&config);
        return -1;
    }
    *out = config;
    return 0;
}

static void forget(char **list)
{
    for (size_t i = 0; list && list[i]; i++) {
        explicit_bzero(list[i], strlen(list[i]));
        free(list[i]);
    }
    free(list);
}

void mcp_config_done(struct mcp_config *config)
{
    forget(config->argv);
    forget(config->env);
    forget(config->headers);
    free(config->cwd);
    free(config->url);
    json_decref(config->wishes);
    *config = (struct mcp_config){ .argv = NULL };
}
