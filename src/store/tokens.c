/* Tokens: secrets, lookup, and their list. Runs in the cli process (cupel token) and in the serve
 * process. A lookup compares with every token, each to the end, so that its time tells nothing. */
#include "store/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "store/state_file.h"

#define SECRET_HEAD "cupel_"
#define SECRET_BYTES 32
#define LOCK_FILE "tokens.lock"

const struct tokens_quota_row tokens_quota_rows[TOKENS_QUOTA_COUNT] = {
#define X(id, name, most, doc) [TOKENS_##id] = { name, most, doc },
    TOKENS_QUOTAS(X)
#undef X
};

const char *const tokens_list_names[TOKENS_LIST_COUNT] = {
    [TOKENS_PROFILES] = "profiles",
    [TOKENS_IMAGES] = "images",
    [TOKENS_TOOLS] = "tools",
};

void tokens_quota_init(struct tokens_quota *quota)
{
    *quota = (struct tokens_quota){ 0 };
    for (size_t i = 0; i < TOKENS_QUOTA_COUNT; i++)
        quota->value[i] = TOKENS_NO_BOUND;
    for (size_t i = 0; i < LIMITS_COUNT; i++)
        quota->limits[i] = TOKENS_NO_BOUND;
}

void tokens_quota_done(struct tokens_quota *quota)
{
    for (size_t i = 0; i < TOKENS_LIST_COUNT; i++) {
        json_decref(quota->lists[i]);
        quota->lists[i] = NULL;
    }
}

void tokens_quota_copy(struct tokens_quota *out, const struct tokens_quota *from)
{
    *out = *from;
    for (size_t i = 0; i < TOKENS_LIST_COUNT; i++)
        json_incref(out->lists[i]);
}

void tokens_done(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        tokens_quota_done(&tokens->at[i].quota);
    free(tokens->at);
    *tokens = TOKENS_INIT;
}

bool tokens_is_id(struct str id)
{
    if (id.len != TOKENS_ID_ROOM - 1 || memcmp(id.at, "k_", 2) != 0)
        return false;
    for (size_t i = 2; i < id.len; i++)
        if (!memchr("0123456789abcdef", id.at[i], 16))
            return false;
    return true;
}

bool tokens_is_name(struct str name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    if (name.len == 0 || name.len > TOKENS_NAME_MAX || tokens_is_id(name))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!memchr(allowed, name.at[i], sizeof allowed - 1))
            return false;
    return true;
}

struct tokens_token *tokens_find(const struct tokens *tokens, const char *name_or_id)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (strcmp(tokens->at[i].name, name_or_id) == 0 ||
            strcmp(tokens->at[i].id, name_or_id) == 0)
            return &tokens->at[i];
    return NULL;
}

/* 1 if equal, 0 if not, in the same time. */
static size_t is_same(const char *a, const char *b)
{
    unsigned differ = 0;
    for (size_t i = 0; i < HASH_HEX_ROOM - 1; i++)
        differ |= (unsigned)(unsigned char)a[i] ^ (unsigned)(unsigned char)b[i];
    return ((differ - 1) >> 8) & 1;
}

struct tokens_token *tokens_find_secret(const struct tokens *tokens, struct str secret)
{
    char hash[HASH_HEX_ROOM];
    struct str head = { secret.at ? secret.at : "", secret.len };
    if (head.len > TOKENS_SECRET_LEN)
        head.len = TOKENS_SECRET_LEN;
    hash_hex(head, hash);
    size_t found = 0; /* its index and one */
    for (size_t i = 0; i < tokens->count; i++) {
        size_t mask = 0 - is_same(tokens->at[i].sha256, hash);
        found = (found & ~mask) | ((i + 1) & mask);
    }
    return found && secret.len == TOKENS_SECRET_LEN ? &tokens->at[found - 1] : NULL;
}

/* 43 digits of 6 bits: 256 bits, and two that are zero. */
static void make_secret(char out[TOKENS_SECRET_LEN + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[SECRET_BYTES + 1] = { 0 };
    if (getrandom(bytes, SECRET_BYTES, 0) != SECRET_BYTES)
        abort(); /* the kernel gives so few bytes at once */
    size_t len = strlen(SECRET_HEAD);
    memcpy(out, SECRET_HEAD, len);
    for (size_t bit = 0; len < TOKENS_SECRET_LEN; bit += 6) {
        unsigned pair = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
        out[len++] = digits[pair >> (10 - bit % 8) & 63];
    }
    out[len] = 0;
    explicit_bzero(bytes, sizeof bytes);
}

static void make_id(const struct tokens *tokens, char out[TOKENS_ID_ROOM])
{
    memcpy(out, "k_", 2);
    do
        hash_random_hex(out + 2, TOKENS_ID_ROOM - 3);
    while (tokens_find(tokens, out));
}

int tokens_add(struct tokens *tokens, const char *name, int64_t created_at, int64_t expires_at,
               bool is_operator, const struct tokens_quota *quota,
               char out_secret[TOKENS_SECRET_LEN + 1], struct err *err)
{
    if (!tokens_is_name((struct str){ name, strlen(name) })) {
        err_input(err, "name", name, "1 to 64 of A-Z a-z 0-9 . _ -",
                  "'%.100s' is no name of a token: 1 to 64 of A-Z a-z 0-9 . _ -", name);
        if (strncmp(name, "k_", 2) == 0)
            err_hint(err, "ids of tokens look like that");
        return -1;
    }
    if (tokens_find(tokens, name)) {
        err_input(err, "name", name, "a name that is free", "there is a token '%s'", name);
        err->kind = ERR_CONFLICT;
        err_hint(err, "choose another name, or remove it first: cupel token rm %s", name);
        return -1;
    }
    if (tokens->count >= TOKENS_MAX)
        return err_set(err, ERR_LIMIT, "there are %zu tokens; the maximum is %d", tokens->count,
                       TOKENS_MAX);
    struct tokens_token token = { .created_at = created_at, .expires_at = expires_at,
                                  .is_operator = is_operator, .quota = *quota };
    snprintf(token.name, sizeof token.name, "%s", name);
    make_id(tokens, token.id);
    make_secret(out_secret);
    hash_hex(str_of(out_secret), token.sha256);
    tokens->at = buf_list_room(tokens->at, tokens->count, sizeof *tokens->at);
    tokens->at[tokens->count++] = token;
    return 0;
}

void tokens_remove(struct tokens *tokens, struct tokens_token *token)
{
    tokens_quota_done(&token->quota);
    size_t after = tokens->count - 1 - (size_t)(token - tokens->at);
    memmove(token, token + 1, after * sizeof *token);
    tokens->count--;
}

/* --- the file --- */

int tokens_read(int state_dir, struct tokens *out, struct stat *out_stat, struct err *err)
{
    own_buf text = BUF_INIT(TOKENS_FILE_MAX);
    struct tokens tokens = TOKENS_INIT;
    struct stat st;
    int there = state_file_read(state_dir, TOKENS_FILE, &text, &st, err);
    if (there < 0)
        return -1;
    if (there && tokens_parse(buf_str(&text), &tokens, err) < 0) {
        err_wrap(err, "'%s' of the state folder", TOKENS_FILE);
        err->kind = ERR_HOST;
        err_hint(err, "mend that line, or remove the file and make the tokens again");
        *out_stat = st;
        return -1;
    }
    if (there)
        *out_stat = st;
    *out = tokens;
    return there;
}

int tokens_lock(int state_dir, struct err *err)
{
    return state_file_lock(state_dir, LOCK_FILE, /* wait= */ true, err);
}

int tokens_write(int state_dir, const struct tokens *tokens, struct err *err)
{
    own_json value = tokens_to_json(tokens);
    own_str text = json_write(value, JSON_INDENT(1));
    own_buf file = BUF_INIT(TOKENS_FILE_MAX);
    if (!text || buf_printf(&file, "%s\n", text) < 0)
        return err_set(err, ERR_LIMIT, "the tokens need more than %u bytes", TOKENS_FILE_MAX);
    return state_file_write(state_dir, TOKENS_FILE, buf_str(&file), /* durable= */ true, err);
}
