/* The one error value. The caller owns it and passes it last. It holds no pointers, so it can cross
 * a pipe unchanged. An err means that cupel could not or would not do the job; user code that fails
 * is an outcome, never an err. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/attr.h"

/*     kind    name        exit  HTTP  what it means */
#define ERR_KINDS(X)                                                                   \
    X(NONE, "none", 0, 200)         /* no error */                                     \
    X(USAGE, "usage", 2, 400)       /* the command line is wrong */                    \
    X(INPUT, "input", 2, 400)       /* the request is wrong: field, value, bound */    \
    X(LIMIT, "limit", 2, 413)       /* input from outside exceeds its maximum */       \
    X(ABSENT, "absent", 2, 404)     /* a named thing does not exist */                 \
    X(METHOD, "method", 2, 405)     /* the route exists, with other methods */         \
    X(CONFLICT, "conflict", 2, 409) /* it contradicts what is there */                 \
    X(TOKEN, "token", 77, 401)      /* no token, or one that is unknown or expired */  \
    X(FORBIDDEN, "forbidden", 77, 403) /* the token, or the caller, may not */         \
    X(QUOTA, "quota", 75, 429)      /* the token has used its share; perhaps later */  \
    X(BUSY, "busy", 75, 503)        /* no room now, perhaps later */                   \
    X(SLOW, "slow", 75, 408)        /* the request did not arrive in its time */       \
    X(RANGE, "range", 2, 416)       /* a range that the file does not have */          \
    X(CANCELLED, "cancelled", 130, 409) /* the caller cancelled it before it ran */    \
    X(HOST, "host", 125, 500)       /* the host lacks something; text says the fix */  \
    X(BUG, "internal", 125, 500)    /* a fault in cupel */

enum err_kind {
#define X(id, name, exit_code, http) ERR_##id,
    ERR_KINDS(X)
#undef X
};

struct err {
    enum err_kind kind;
    int sys; /* errno, or 0 */
    char text[512]; /* lower case, no full stop, subject in quotes */
    char field[96]; /* ERR_INPUT: dotted name of the field, "" if none */
    char value[160]; /* ERR_INPUT: the refused value as JSON text, shortened */
    char bound[96]; /* ERR_INPUT: the accepted values */
    char hint[512]; /* one sentence that a person or a model can act on */
};

#define ERR_INIT ((struct err){ .kind = ERR_NONE })

/* Fill *err and return -1, so that a caller can write `return err_set(...)`. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) attr_printf(3, 4);
/* As err_set with ERR_HOST, keeping errno and appending its text. */
int err_sys(struct err *err, const char *fmt, ...) attr_printf(2, 3);
/* Put a prefix before the text: "prefix: text". Returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) attr_printf(2, 3);
/* Refuse an input field. value and bound may be NULL. Returns -1. */
int err_input(struct err *err, const char *field, const char *value, const char *bound,
              const char *fmt, ...) attr_printf(5, 6);
/* Set the hint; keeps everything else. */
void err_hint(struct err *err, const char *fmt, ...) attr_printf(2, 3);

const char *err_kind_name(enum err_kind kind);
int err_exit_code(enum err_kind kind);
int err_http_status(enum err_kind kind);
/* The kind of that name; ERR_BUG for an unknown name. */
enum err_kind err_kind_find(const char *name);

#endif
