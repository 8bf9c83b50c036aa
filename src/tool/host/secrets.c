/* Secrets: read, put into texts, and hidden in texts. Runs in the tool host's process, in any
 * thread. */
#include "tool/host/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/owned.h"
#include "tool/host/source.h"

#define NAME_MAX_LEN 64

struct secrets {
    atomic_int refs;
    size_t count;
    struct secret {
        char *name;
        struct str value;
        char *label; /* "[secret NAME]" */
    } *at;
};

static bool is_name(const char *name, size_t len)
{
    bool good = len > 0 && len <= NAME_MAX_LEN && !(*name >= '0' && *name <= '9');
    for (size_t i = 0; good && i < len; i++)
        good = name[i] == '_' || (name[i] >= '0' && name[i] <= '9') ||
               (name[i] >= 'A' && name[i] <= 'Z') || (name[i] >= 'a' && name[i] <= 'z');
    return good;
}

static int add(struct secrets *secrets, const char *name, const json_t *value, struct err *err)
{
    struct str text = json_is_string(value) ? json_str(value) : STR_NONE;
    if (!is_name(name, strlen(name)))
        return err_set(err, ERR_INPUT,
                       "a name of a secret must be at most 64 letters, digits and _, no digit "
                       "first");
    if (text.len < SECRETS_LEN_MIN || text.len > SECRETS_LEN_MAX || strlen(text.at) != text.len)
        return err_set(err, ERR_INPUT, "secret '%s' must be a text of %d to %d bytes", name,
                       SECRETS_LEN_MIN, SECRETS_LEN_MAX);
    struct secret *secret = &secrets->at[secrets->count++];
    own_buf label = BUF_INIT(128);
    buf_printf(&label, "[secret %s]", name);
    secret->name = buf_strdup(str_of(name));
    secret->value = (struct str){ buf_strdup(text), text.len };
    secret->label = buf_take(&label);
    return 0;
}

static int longest_first(const void *a, const void *b)
{
    const struct secret *x = a, *y = b;
    return x->value.len < y->value.len ? 1 : x->value.len > y->value.len ? -1 : 0;
}

static int fill(struct secrets *secrets, const json_t *whole, struct err *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(whole) || json_object_size(whole) > SECRETS_COUNT_MAX)
        return err_set(err, ERR_INPUT, "it does not hold one JSON object of at most %d secrets",
                       SECRETS_COUNT_MAX);
    secrets->at = buf_alloc_zero(json_object_size(whole) + 1, sizeof *secrets->at);
    json_object_foreach ((json_t *)(uintptr_t)whole, name, value)
        if (add(secrets, name, value, err) < 0)
            return -1;
    /* One secret may be part of another: the longer one is hidden first. */
    qsort(secrets->at, secrets->count, sizeof *secrets->at, longest_first);
    return 0;
}

static int read_into(struct secrets *secrets, const char *path, struct err *err)
{
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    own_buf text = BUF_INIT(SECRETS_FILE_MAX);
    struct err why = ERR_INIT;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_INPUT, "it is a symbolic link");
    if (fd < 0)
        return err_sys(err, "open it");
    if (owned_check(fd, OWNED_SECRET_FILE, err) < 0)
        return -1;
    if (buf_read(&text, fd) < 0)
        return err_sys(err, "read it");
    own_json whole = json_read(buf_str(&text), SECRETS_FILE_MAX, &why);
    int done = fill(secrets, whole, err); /* the parser's message might repeat a secret */
    if (text.at)
        explicit_bzero(text.at, text.len);
    return done;
}

struct secrets *secrets_read(const char *path, struct err *err)
{
    struct secrets *secrets = buf_alloc_zero(1, sizeof *secrets);
    secrets->refs = 1;
    if (!path || read_into(secrets, path, err) == 0)
        return secrets;
    err_wrap(err, "secrets file '%.200s'", path);
    secrets_unref(secrets);
    return NULL;
}

struct secrets *secrets_ref(struct secrets *secrets)
{
    atomic_fetch_add(&secrets->refs, 1);
    return secrets;
}

void secrets_unref(struct secrets *secrets)
{
    if (!secrets || atomic_fetch_sub(&secrets->refs, 1) != 1)
        return;
    for (size_t i = 0; i < secrets->count; i++) {
        struct secret *secret = &secrets->at[i];
        char *value = (char *)(uintptr_t)secret->value.at;
        explicit_bzero(value, secret->value.len);
        free(value);
        free(secret->name);
        free(secret->label);
    }
    free(secrets->at);
    free(secrets);
}

static const struct secret *find(const struct secrets *secrets, struct str name)
{
    for (size_t i = 0; i < secrets->count; i++)
        if (str_is(name, secrets->at[i].name))
            return &secrets->at[i];
    return NULL;
}

char *secrets_expand(const struct secrets *secrets, const char *text, struct err *err)
{
    static const char open[] = "${secret:";
    own_buf out = BUF_INIT(64 << 10);
    int fits = 0;
    for (const char *from = strstr(text, open); from && fits == 0; from = strstr(text, open)) {
        const char *name = from + sizeof open - 1, *end = strchr(name, '}');
        size_t len = end ? (size_t)(end - name) : 0;
        if (!end || !is_name(name, len)) {
            err_input(err, "", text, "${secret:NAME}", "'%.80s' has no whole ${secret:NAME}", text);
            return NULL;
        }
        const struct secret *secret = find(secrets, (struct str){ name, len });
        if (!secret) {
            err_input(err, "", NULL, "a secret of the secrets file",
                      "the secrets file has no secret '%.*s'", (int)len, name);
            return NULL;
        }
        fits = buf_add(&out, text, (size_t)(from - text)) | buf_add_str(&out, secret->value);
        text = end + 1;
    }
    if (fits == 0 && buf_add_text(&out, text) == 0)
        return buf_take(&out);
    err_set(err, ERR_LIMIT, "a text with secrets exceeds 64 KiB");
    return NULL;
}

static char *replace(char *text, size_t *len, const struct secret *secret)
{
    const char *found = memmem(text, *len, secret->value.at, secret->value.len);
    if (!found)
        return text;
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    const char *from = text, *end = text + *len;
    for (; found; found = memmem(from, (size_t)(end - from), secret->value.at, secret->value.len)) {
        buf_add(&out, from, (size_t)(found - from));
        buf_add_text(&out, secret->label);
        from = found + secret->value.len;
    }
    buf_add(&out, from, (size_t)(end - from));
    free(text);
    *len = out.len;
    return buf_take(&out);
}

/* NULL: there is no secret in it. */
static char *hidden(const struct secrets *secrets, const char *text, size_t *len)
{
    bool any = false;
    for (size_t i = 0; i < secrets->count && !any; i++)
        any = memmem(text, *len, secrets->at[i].value.at, secrets->at[i].value.len) != NULL;
    if (!any)
        return NULL;
    char *copy = buf_strdup((struct str){ text, *len });
    for (size_t i = 0; i < secrets->count; i++)
        copy = replace(copy, len, &secrets->at[i]);
    return copy;
}

char *secrets_hide(const struct secrets *secrets, const char *text, size_t len)
{
    char *copy = hidden(secrets, text, &len);
    return copy ? copy : buf_strdup((struct str){ text, len });
}

static json_t *scrub_text(const struct secrets *secrets, json_t *value)
{
    size_t len = json_string_length(value);
    own_str copy = hidden(secrets, json_string_value(value), &len);
    if (!copy)
        return value;
    json_decref(value);
    return json_text((struct str){ copy, len });
}

static json_t *scrub_number(const struct secrets *secrets, json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT);
    for (size_t i = 0; text && i < secrets->count; i++)
        if (strstr(text, secrets->at[i].value.at)) {
            json_decref(value);
            return json_string(secrets->at[i].label);
        }
    return value;
}

static json_t *scrub_object(const struct secrets *secrets, json_t *object)
{
    json_t *out = json_object(), *value;
    const char *name;
    json_object_foreach (object, name, value) {
        size_t len = strlen(name);
        own_str copy = hidden(secrets, name, &len);
        json_object_set_new(out, copy ? copy : name, secrets_scrub(secrets, json_incref(value)));
    }
    json_decref(object);
    return out;
}

json_t *secrets_scrub(const struct secrets *secrets, json_t *value)
{
    if (secrets->count == 0)
        return value;
    if (json_is_string(value))
        return scrub_text(secrets, value);
    if (json_is_number(value))
        return scrub_number(secrets, value);
    if (json_is_object(value))
        return scrub_object(secrets, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_set_new(value, i, secrets_scrub(secrets, json_incref(json_array_get(value, i))));
    return value;
}
