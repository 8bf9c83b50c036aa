/* The configuration, config.json: one table of keys, a strict reader, and where each value came
 * from. Flags are over the environment, over the user's file, over /etc/cupel/config.json: the
 * caller takes them in the opposite order. Pure: no file is opened here. */
#ifndef CONTRACT_CONFIG_H
#define CONTRACT_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "contract/caps.h"
#include "contract/limits.h"

#define CONFIG_FILE_MAX ((size_t)1 << 20)
#define CONFIG_SYSTEM_FILE "/etc/cupel/config.json"
#define CONFIG_LIST_MAX 64   /* members of an array */
#define CONFIG_TEXT_MAX 4096 /* bytes of a text */
#define CONFIG_PORT 8765     /* where docs and 'cupel run --curl' expect the service */

enum config_key {
    CONFIG_LISTEN,
    CONFIG_INSECURE_HTTP,
    CONFIG_HOSTS,
    CONFIG_ORIGINS,
    CONFIG_TLS_CERT,
    CONFIG_TLS_KEY,
    CONFIG_SOCKET,
    CONFIG_STATE,
    CONFIG_RUNS,
    CONFIG_QUEUE,
    CONFIG_POOL,
    CONFIG_PROFILE,
    CONFIG_IMAGE,
    CONFIG_MODEL,
    CONFIG_JUDGE,
    CONFIG_PLANNER,
    CONFIG_MODELS,
    CONFIG_RETENTION_FILES,
    CONFIG_RETENTION_BLOBS,
    CONFIG_REDACT,
    CONFIG_RETENTION_RECORDS,
    CONFIG_RETENTION_BYTES,
    CONFIG_TOOLS,
    CONFIG_TOOLS_MCP,
    CONFIG_TOOLS_SECRETS,
    CONFIG_RECORDS,
    CONFIG_DURABLE,
    CONFIG_CACHE_TTL,
    CONFIG_IMAGES_REGISTRY,
    CONFIG_LOG,
    CONFIG_IMAGES_BUILDS,
    CONFIG_IMAGES_PACKAGES,
    CONFIG_IMAGES_PINNED,
    CONFIG_IMAGES_HASHES,
    CONFIG_HTTP, /* and one for each enum http_cap */
    CONFIG_CEILINGS = CONFIG_HTTP + HTTP_CAP_COUNT, /* and one for each enum limits_id */
    CONFIG_COUNT = CONFIG_CEILINGS + LIMITS_COUNT
};

enum config_type {
    CONFIG_IS_FLAG,      /* true or false */
    CONFIG_IS_INTEGER,
    CONFIG_IS_NUMBER,    /* a limit: it may have a fraction */
    CONFIG_IS_TEXT,      /* not empty */
    CONFIG_IS_PATH,      /* absolute */
    CONFIG_IS_CHOICE,
    CONFIG_IS_PROFILE,
    CONFIG_IS_IMAGE,     /* as in requests; whether it exists is the engine's matter */
    CONFIG_IS_TEXTS,     /* an array of texts */
    CONFIG_IS_ADDRESSES, /* an array of "ADDR:PORT" */
    CONFIG_IS_HOSTS,     /* an array of names of hosts */
    CONFIG_IS_ORIGINS,   /* an array of "SCHEME://HOST[:PORT]" */
    CONFIG_TYPES
};

struct config_row {
    const char *name;     /* "tls.cert": member cert of the object tls */
    enum config_type type;
    bool reloads;         /* SIGHUP changes it in a running server */
    bool outside;         /* only the environment and flags have it, never a file */
    int64_t least, most;  /* of a number, times `scale` */
    int64_t scale;
    const char *fallback; /* the default as JSON */
    const char *choices;  /* "stderr|journal|off" */
    const char *variable; /* of the environment; NULL: none */
    const char *doc;      /* one sentence without its full stop */
};
const struct config_row *config_row(enum config_key key);
/* CONFIG_COUNT if there is none. */
enum config_key config_find(const char *name);
/* The accepted values: "an integer, 1 to 4096". */
void config_bound(enum config_key key, char *out, size_t room);

struct config {
    struct config_value {
        json_t *value; /* json_null(): not set */
        char *from;    /* "default", a path, "environment CUPEL_MODEL", "option --runs" */
    } at[CONFIG_COUNT];
};

/* All defaults. */
void config_init(struct config *config);
void config_done(struct config *config);
#define own_config attr_cleanup(config_done) struct config

/* Takes over what the text of a file sets. Errors name the file, the key, the value and the bound,
 * and leave the configuration half changed: the caller drops it. */
int config_take_file(struct config *config, struct str text, const char *path, struct err *err);
/* The same for one value, of the environment or an option. Takes the value. */
int config_take(struct config *config, enum config_key key, json_t *value, const char *from,
                struct err *err);
/* Checks the values together. */
int config_check(const struct config *config, struct err *err);

static inline bool config_is_set(const struct config *config, enum config_key key)
{
    return !json_is_null(config->at[key].value);
}

static inline int64_t config_integer(const struct config *config, enum config_key key)
{
    return json_integer_value(config->at[key].value);
}

/* NULL: not set. */
static inline const char *config_text(const struct config *config, enum config_key key)
{
    return json_string_value(config->at[key].value);
}

/* A new array of a list's texts, which NULL ends; the texts stay the configuration's. */
const char **config_texts(const struct config *config, enum config_key key);
void config_caps(const struct config *config, int64_t caps[HTTP_CAP_COUNT]);
/* In stored units, where a ceiling is set; else the limit's own maximum. */
void config_ceilings(const struct config *config, struct limits *out);
/* [{"key","value","from","default","allowed","reloads","variable","about"}] */
json_t *config_describe(const struct config *config);

struct config_address {
    char host[64]; /* an IPv4 or IPv6 address, without brackets */
    bool is_v6, is_loopback;
    uint16_t port; /* 0: any free one */
};
/* "127.0.0.1:8765", "[::1]:8765", "localhost:0". */
int config_address_read(const char *text, struct config_address *out, struct err *err);

#endif
