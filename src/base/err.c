/* The error value: filling, wrapping and naming. Any process; no state. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code, http;
} kinds[] = {
#define X(id, name, exit_code, http) [ERR_##id] = { name, exit_code, http },
    ERR_KINDS(X)
#undef X
};

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;
    *err = ERR_INIT;
    err->kind = kind;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;
    *err = ERR_INIT;
    err->kind = ERR_HOST;
    err->sys = saved;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(saved));
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char inner[sizeof err->text];
    va_list ap;
    memcpy(inner, err->text, sizeof inner);
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", inner);
    return -1;
}

int err_input(struct err *err, const char *field, const char *value, const char *bound,
              const char *fmt, ...)
{
    va_list ap;
    *err = ERR_INIT;
    err->kind = ERR_INPUT;
    snprintf(err->field, sizeof err->field, "%s", field ? field : "");
    snprintf(err->value, sizeof err->value, "%s", value ? value : "");
    snprintf(err->bound, sizeof err->bound, "%s", bound ? bound : "");
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return -1;
}

void err_hint(struct err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
}

const char *err_kind_name(enum err_kind kind)
{
    return kinds[kind].name;
}

enum err_kind err_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return (enum err_kind)i;
    return ERR_BUG;
}

int err_exit_code(enum err_kind kind)
{
    return kinds[kind].exit_code;
}

int err_http_status(enum err_kind kind)
{
    return kinds[kind].http;
}
