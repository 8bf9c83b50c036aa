/* Tokens of the HTTP door: their file, tokens.json in the state folder, and what each may use. Only
 * the SHA-256 of a secret is kept. Read by the serve process, changed by `cupel token` under a
 * lock. */
#ifndef STORE_TOKENS_H
#define STORE_TOKENS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "contract/limits.h"

#define TOKENS_FILE "tokens.json"
#define TOKENS_FILE_MAX (4u << 20)
#define TOKENS_MAX 1024
#define TOKENS_NAME_MAX 64
#define TOKENS_ID_ROOM 15 /* "k_", 12 hexadecimal digits, NUL */
#define TOKENS_SECRET_LEN 49 /* "cupel_" and 43 characters of url-safe base64 */
#define TOKENS_LIST_MAX 64 /* profiles, images or tools of one token */
#define TOKENS_WORD_MAX 200 /* bytes of one of them */
#define TOKENS_NO_BOUND (-1)
#define TOKENS_NEVER INT64_MAX /* expires_at: null */
#define TOKENS_TIME_ROOM 24 /* "2026-11-16T15:46:06Z" */

/*    id            name              most         meaning */
#define TOKENS_QUOTAS(X)                                                             \
    X(RUNS_AT_ONCE, "runs_at_once", 100000, "runs at once")                          \
    X(RUNS_A_MINUTE, "runs_a_minute", 100000, "runs that begin in any 60 seconds")   \
    X(CPU_S_A_DAY, "cpu_s_a_day", 100000000, "CPU seconds of a day, in UTC")         \
    X(SESSIONS, "sessions", 100000, "sessions at once")                              \
    X(STORED_BYTES, "stored_bytes", INT64_C(1) << 50, "bytes of blobs and kept files")

enum tokens_quota_id {
#define X(id, name, most, doc) TOKENS_##id,
    TOKENS_QUOTAS(X)
#undef X
    TOKENS_QUOTA_COUNT
};
struct tokens_quota_row {
    const char *name;
    int64_t most;
    const char *doc;
};
extern const struct tokens_quota_row tokens_quota_rows[TOKENS_QUOTA_COUNT];

enum tokens_list_id { TOKENS_PROFILES, TOKENS_IMAGES, TOKENS_TOOLS, TOKENS_LIST_COUNT };
extern const char *const tokens_list_names[TOKENS_LIST_COUNT];

struct tokens_quota {
    int64_t value[TOKENS_QUOTA_COUNT]; /* or TOKENS_NO_BOUND */
    int64_t limits[LIMITS_COUNT]; /* largest, in stored units; or TOKENS_NO_BOUND */
    json_t *lists[TOKENS_LIST_COUNT]; /* texts; NULL: no bound */
};

struct tokens_token {
    char id[TOKENS_ID_ROOM];
    char name[TOKENS_NAME_MAX + 1];
    char sha256[HASH_HEX_ROOM];
    int64_t created_at, expires_at; /* seconds since 1970 */
    bool is_operator;
    struct tokens_quota quota;
};

struct tokens {
    struct tokens_token *at;
    size_t count;
};
#define TOKENS_INIT ((struct tokens){ 0 })
void tokens_done(struct tokens *tokens);
#define own_tokens attr_cleanup(tokens_done) struct tokens
/* Without bounds. */
void tokens_quota_init(struct tokens_quota *quota);
void tokens_quota_done(struct tokens_quota *quota);
/* The copy shares the lists. */
void tokens_quota_copy(struct tokens_quota *out, const struct tokens_quota *from);

/* 1 to TOKENS_NAME_MAX of A-Z a-z 0-9 . _ - and not like an id. */
bool tokens_is_name(struct str name);
/* "k_" and 12 hexadecimal digits. */
bool tokens_is_id(struct str id);
struct tokens_token *tokens_find(const struct tokens *tokens, const char *name_or_id);
/* The token whose secret this is. The time depends on the number of tokens alone. */
struct tokens_token *tokens_find_secret(const struct tokens *tokens, struct str secret);
/* Appends one with a fresh id and secret. It owns the lists of `quota` on success. */
int tokens_add(struct tokens *tokens, const char *name, int64_t created_at, int64_t expires_at,
               bool is_operator, const struct tokens_quota *quota,
               char out_secret[TOKENS_SECRET_LEN + 1], struct err *err);
void tokens_remove(struct tokens *tokens, struct tokens_token *token);

/* One bound of a quota, checked: of a number, of "limits.NAME", or one more word of a list. */
int tokens_quota_set(struct tokens_quota *quota, enum tokens_quota_id id, const json_t *value,
                     struct err *err);
int tokens_quota_set_limit(struct tokens_quota *quota, const char *name, const json_t *value,
                           struct err *err);
int tokens_quota_add_word(struct tokens_quota *quota, enum tokens_list_id id, const json_t *word,
                          struct err *err);

/* The text of the file. Strict: an unknown key, a name or id twice, is an error. */
int tokens_parse(struct str text, struct tokens *out, struct err *err);
json_t *tokens_to_json(const struct tokens *tokens);
/* Bounds that there are. */
json_t *tokens_quota_json(const struct tokens_quota *quota);
/* 1; 0: there is no file, *out is empty; -1: an err. */
int tokens_read(int state_dir, struct tokens *out, struct stat *out_stat, struct err *err);
/* Holds off other writers; the lock ends when the descriptor is closed. */
int tokens_lock(int state_dir, struct err *err);
int tokens_write(int state_dir, const struct tokens *tokens, struct err *err);

void tokens_write_time(int64_t at, char out[TOKENS_TIME_ROOM]);
bool tokens_read_time(struct str text, int64_t *out);

#endif
