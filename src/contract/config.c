/* The table of keys of config.json, and values with where they came from. Runs in the cli and
 * serve processes; pure.
 * 1. A key is set in one place only: the last one taken wins, arrays as a whole.
 * 2. Every value is checked when it is taken, whatever its origin. */
#include "contract/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/own.h"

#define RELOADS true
#define FIXED false

#define TEXTS(name, type, doc) { name, type, RELOADS, false, 0, 0, 1, "[]", NULL, NULL, doc }
#define CAP(id, name, fallback, least, most, doc) \
    [CONFIG_HTTP + HTTP_##id] = { "http." name, CONFIG_IS_INTEGER, RELOADS, false, least, most, 1, \
                                  NULL, NULL, NULL, doc },
#define CEILING(id, name, doc) \
    [CONFIG_CEILINGS + LIMITS_##id] = { "ceilings." name, CONFIG_IS_NUMBER, RELOADS, false, 0, 0, \
                                        1, "null", NULL, NULL, doc }

static const struct config_row rows[CONFIG_COUNT] = {
    [CONFIG_LISTEN] = { "listen", CONFIG_IS_ADDRESSES, FIXED, false, 0, 0, 1, "[]", NULL, NULL,
                        "addresses of the HTTP service; without one there is only the socket" },
    [CONFIG_INSECURE_HTTP] = { "insecure_http", CONFIG_IS_FLAG, FIXED, false, 0, 0, 1, "false",
                               NULL, NULL,
                               "listen without TLS on addresses that other hosts can reach" },
    [CONFIG_HOSTS] = TEXTS("hosts", CONFIG_IS_HOSTS,
                           "names by which clients may call the service, beside its addresses"),
    [CONFIG_ORIGINS] = TEXTS("origins", CONFIG_IS_ORIGINS,
                             "web pages whose scripts may call the service"),
    [CONFIG_TLS_CERT] = { "tls.cert", CONFIG_IS_PATH, FIXED, false, 0, 0, 1, "null", NULL, NULL,
                          "file with the certificate chain, PEM; SIGHUP reads it again" },
    [CONFIG_TLS_KEY] = { "tls.key", CONFIG_IS_PATH, FIXED, false, 0, 0, 1, "null", NULL, NULL,
                         "file with the private key, PEM; SIGHUP reads it again" },
    [CONFIG_SOCKET] = { "socket", CONFIG_IS_TEXT, FIXED, true, 0, 0, 1, "null", NULL,
                        "CUPEL_SOCKET", "the engine's socket, for the engine and its clients" },
    [CONFIG_STATE] = { "state", CONFIG_IS_TEXT, FIXED, true, 0, 0, 1, "null", NULL, "CUPEL_STATE",
                       "folder of tokens, blobs, records and caches" },
    [CONFIG_RUNS] = { "runs", CONFIG_IS_INTEGER, FIXED, false, 1, 4096, 1, "null", NULL, NULL,
                      "runs at one time; by default it follows the processors" },
    [CONFIG_QUEUE] = { "queue", CONFIG_IS_INTEGER, FIXED, false, 1, 100000, 1, "null", NULL, NULL,
                       "requests that may wait for a place" },
    [CONFIG_POOL] = { "pool", CONFIG_IS_INTEGER, FIXED, false, 0, 24, 1, "null", NULL, NULL,
                      "waiting interpreters of each kind; by default it follows demand" },
    [CONFIG_PROFILE] = { "profile", CONFIG_IS_PROFILE, RELOADS, false, 0, 0, 1, "\"baseline\"",
                         NULL, NULL, "profile of HTTP requests that name none" },
    [CONFIG_IMAGE] = { "image", CONFIG_IS_IMAGE, RELOADS, false, 0, 0, 1, "\"host\"", NULL,
                       "CUPEL_IMAGE", "image of requests and runs that name none" },
    [CONFIG_MODEL] = { "model", CONFIG_IS_TEXT, FIXED, false, 0, 0, 1, "null", NULL,
                       "CUPEL_MODEL", "model of questions and tasks that name none" },
    [CONFIG_JUDGE] = { "judge", CONFIG_IS_TEXT, FIXED, false, 0, 0, 1, "null", NULL, NULL,
                       "model that judges answers; by default the task's own" },
    [CONFIG_PLANNER] = { "planner", CONFIG_IS_TEXT, FIXED, false, 0, 0, 1, "null", NULL, NULL,
                         "model that plans; by default the task's own" },
    [CONFIG_MODELS] = { "models", CONFIG_IS_TEXTS, FIXED, false, 0, 0, 1, "[]", NULL, NULL,
                        "models that tasks may name, beside the default one" },
    [CONFIG_RETENTION_FILES] = { "retention.files_s", CONFIG_IS_INTEGER, RELOADS, false, 0,
                                 366 * 86400, 1, "86400", NULL, NULL,
                                 "seconds that the files of an expired session stay" },
    [CONFIG_RETENTION_BLOBS] = { "retention.blobs_s", CONFIG_IS_INTEGER, RELOADS, false, 60,
                                 366 * 86400, 1, "604800", NULL, NULL,
                                 "seconds that a blob stays after its last use" },
    [CONFIG_REDACT] = { "redact", CONFIG_IS_TEXTS, FIXED, false, 0, 0, 1, "[]", NULL, NULL,
                        "patterns (PCRE2) of secrets that no record may keep, beside the known" },
    [CONFIG_RETENTION_RECORDS] = { "retention.records_s", CONFIG_IS_INTEGER, RELOADS, false, 0,
                                   INT64_C(100) * 366 * 86400, 1, "2592000", NULL, NULL,
                                   "seconds that the record of a run or task stays; 0: no bound" },
    [CONFIG_RETENTION_BYTES] = { "retention.records_bytes", CONFIG_IS_INTEGER, RELOADS, false, 0,
                                 INT64_C(100000000000000), 1, "10737418240", NULL, NULL,
                                 "bytes of records, or tasks; the oldest go first; 0: no bound" },
    [CONFIG_TOOLS] = { "tools.folder", CONFIG_IS_PATH, FIXED, false, 0, 0, 1, "null", NULL, NULL,
                       "folder of tool files that code may be given; cupel/tools of the "
                       "configuration" },
    [CONFIG_TOOLS_MCP] = { "tools.mcp", CONFIG_IS_PATH, FIXED, false, 0, 0, 1, "null", NULL, NULL,
                           "file with 'mcpServers', whose tools code may be given" },
    [CONFIG_TOOLS_SECRETS] = { "tools.secrets", CONFIG_IS_PATH, FIXED, false, 0, 0, 1, "null",
                               NULL, NULL,
                               "file with the secrets of tools; cupel/secrets.json of the "
                               "configuration" },
    [CONFIG_RECORDS] = { "records", CONFIG_IS_FLAG, FIXED, false, 0, 0, 1, "true", NULL, NULL,
                         "store a record of every run" },
    [CONFIG_DURABLE] = { "durable", CONFIG_IS_FLAG, FIXED, false, 0, 0, 1, "false", NULL, NULL,
                         "wait for the disk before a run is answered" },
    [CONFIG_CACHE_TTL] = { "cache.ttl_s", CONFIG_IS_INTEGER, RELOADS, false, 0, 30 * 86400, 1, "0",
                           NULL, NULL,
                           "age of results that answer requests without 'cache'; 0: they run" },
    [CONFIG_IMAGES_REGISTRY] = { "images.registry", CONFIG_IS_TEXT, FIXED, false, 0, 0, 1, "null",
                                 NULL, NULL, "registry of images whose name has none" },
    [CONFIG_LOG] = { "log", CONFIG_IS_CHOICE, RELOADS, false, 0, 0, 1, "\"stderr\"",
                     "stderr|journal|off", NULL, "where the lines of the service's log go" },
    [CONFIG_IMAGES_BUILDS] = { "images.builds", CONFIG_IS_FLAG, FIXED, false, 0, 0, 1, "true",
                               NULL, NULL, "images may be built from packages" },
    [CONFIG_IMAGES_PACKAGES] = { "images.packages", CONFIG_IS_TEXTS, FIXED, false, 0, 0, 1, "[]",
                                 NULL, NULL,
                                 "packages that a build may add: 'pip:polars', 'npm:zod*'; "
                                 "none: any" },
    [CONFIG_IMAGES_PINNED] = { "images.pinned", CONFIG_IS_FLAG, FIXED, false, 0, 0, 1, "false",
                               NULL, NULL, "a build adds packages by exact version alone" },
    [CONFIG_IMAGES_HASHES] = { "images.hashes", CONFIG_IS_FLAG, FIXED, false, 0, 0, 1, "false",
                               NULL, NULL, "a build adds what a lock says, and nothing else" },
    HTTP_CAPS(CAP)
    CEILING(TIMEOUT, "timeout_s", "most seconds that a request may ask for"),
    CEILING(CPU, "cpu_s", "most seconds of processor time that it may ask for"),
    CEILING(MEMORY, "memory_bytes", "most memory that it may ask for"),
    CEILING(DISK, "disk_bytes", "most bytes of files that it may ask for"),
    CEILING(PIDS, "pids", "most processes that it may ask for"),
    CEILING(CPUS, "cpus", "most processors that it may ask for"),
    CEILING(INPUT, "input_bytes", "most bytes of input files that it may ask for"),
    CEILING(STDOUT, "stdout_bytes", "most bytes of stdout that it may ask for"),
    CEILING(STDERR, "stderr_bytes", "most bytes of stderr that it may ask for"),
    CEILING(ARTIFACT_BYTES, "artifact_bytes", "most bytes of artifacts that it may ask for"),
    CEILING(ARTIFACT_FILES, "artifact_files", "most artifacts that it may ask for"),
};

const struct config_row *config_row(enum config_key key)
{
    return &rows[key];
}

enum config_key config_find(const char *name)
{
    for (enum config_key key = 0; key < CONFIG_COUNT; key++)
        if (strcmp(rows[key].name, name) == 0)
            return key;
    return CONFIG_COUNT;
}

static json_t *fallback(enum config_key key)
{
    if (key >= CONFIG_HTTP && key < CONFIG_CEILINGS)
        return json_integer(http_caps[key - CONFIG_HTTP].fallback);
    return json_loads(rows[key].fallback, JSON_DECODE_ANY, NULL);
}

void config_init(struct config *config)
{
    for (enum config_key key = 0; key < CONFIG_COUNT; key++)
        config->at[key] = (struct config_value){ fallback(key), buf_strdup(STR("default")) };
}

void config_done(struct config *config)
{
    for (enum config_key key = 0; key < CONFIG_COUNT; key++) {
        json_decref(config->at[key].value);
        free(config->at[key].from);
        config->at[key] = (struct config_value){ NULL, NULL };
    }
}

const char **config_texts(const struct config *config, enum config_key key)
{
    const json_t *list = config->at[key].value, *text;
    const char **out = buf_alloc_zero(json_array_size(list) + 1, sizeof *out);
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, text)
        out[i] = json_string_value(text);
    return out;
}

void config_caps(const struct config *config, int64_t caps[HTTP_CAP_COUNT])
{
    for (enum http_cap cap = 0; cap < HTTP_CAP_COUNT; cap++)
        caps[cap] = config_integer(config, CONFIG_HTTP + cap);
}

void config_ceilings(const struct config *config, struct limits *out)
{
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++) {
        const json_t *value = config->at[CONFIG_CEILINGS + id].value;
        int64_t scale = limits_rows[id].scale;
        out->value[id] = json_is_integer(value) ? json_integer_value(value) * scale
                         : json_is_real(value)  ? (int64_t)(json_real_value(value) * (double)scale)
                                                : limits_rows[id].most;
    }
}

json_t *config_describe(const struct config *config)
{
    json_t *list = json_array();
    for (enum config_key key = 0; key < CONFIG_COUNT; key++) {
        char bound[200];
        config_bound(key, bound, sizeof bound);
        json_array_append_new(
            list, json_pack("{s:s, s:O, s:s, s:o, s:s, s:b, s:s?, s:s}", "key", rows[key].name,
                            "value", config->at[key].value, "from", config->at[key].from, "default",
                            fallback(key), "allowed", bound, "reloads", rows[key].reloads,
                            "variable", rows[key].variable, "about", rows[key].doc));
    }
    return list;
}
