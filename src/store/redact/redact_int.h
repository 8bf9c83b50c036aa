/* Inside redaction: rows, spans and the state of one search. Pure; any thread. */
#ifndef STORE_REDACT_REDACT_INT_H
#define STORE_REDACT_REDACT_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/redact/pcre.h"
#include "store/redact/redact.h"

#define REDACT_ROWS_MAX 96
#define REDACT_GROUPS 4

/* One part of a text: bytes from..until, without the last. */
struct span {
    size_t from, until;
    const char *kind; /* NULL: a marker, which stays */
};

struct spans {
    struct span *at;
    size_t count;
};
void spans_add(struct spans *spans, size_t from, size_t until, const char *kind);
void spans_done(struct spans *spans);
#define own_spans attr_cleanup(spans_done) struct spans

/* A match of a row's pattern. */
struct hit {
    struct str text;
    size_t anchor;      /* where the row's literal is */
    size_t from, until; /* group 1, else the whole match: will be replaced; a check may change it */
    struct span group[REDACT_GROUPS]; /* 0 is the whole match; until 0: not taken part */
    size_t done; /* all before it is already replaced */
    size_t next_end; /* the first "-----END" at or after the place of the last look */
    const char *kind; /* the row's; a check may change it */
};

enum redact_flags {
    ROW_FOLD = 1, /* anchors and pattern ignore case */
    ROW_WORD = 2, /* only where a word begins */
    ROW_DASH = 4, /* and not after '-' */
    ROW_PART = 8, /* with ROW_WORD: after '_', too, as in the name of a file */
};

/* A kind of secret. The pattern is tried at each place of an anchor, and only there.
 * Linear time: a pattern either succeeds over all that it read, or fails after bounded steps, or
 * its unbounded run cannot hold its own anchor at a place where it would be tried. After a check
 * says no, the row sleeps until the end of the match. */
struct redact_row {
    const char *kind;
    const char *anchors; /* "ghp_|gho_": literals of at least 3 bytes */
    const char *pattern; /* anchored at the literal; group 1, if there is one, is the secret */
    unsigned flags;
    bool (*check)(struct hit *hit); /* NULL: every match is a secret */
    bool tries_again; /* its match is bounded, so no sleep: a secret may begin inside */
};
extern const struct redact_row redact_rows[];
extern const size_t redact_row_count;

/* A name of a variable, member or option that says what its value is. */
enum name_class { NAME_PLAIN, NAME_PASSWORD, NAME_SECRET, NAME_KEY, NAME_AUTHORIZATION, NAMES };
enum name_class redact_name(struct str name);
const char *redact_name_kind(enum name_class class);
/* Does a value of such a name look like a secret? bare: written without quotes among other code. */
bool redact_value(enum name_class class, struct str value, bool bare);
/* The secret part of a value as a session shows it: of "['...', '...']" from the first secret to
 * the last. from == until: none. */
struct span redact_shown(enum name_class class, struct str text);
/* The whole name around a hit's anchor, up to group 1. */
struct str redact_name_at(const struct hit *hit);
/* The part of an Authorization value that is the credential; from == until: none. */
struct span redact_credential(struct str value);
/* Is a run of letters, digits and separators random, that is, not made of words and numbers? */
bool redact_is_random(struct str run);
/* Written in place of a secret: "<token>", "${KEY}", "your-key", or a marker of ours. */
bool redact_is_placeholder(struct str value);

/* Checks of rows. */
bool redact_check_random(struct hit *hit);
bool redact_check_assigned(struct hit *hit);
bool redact_check_authorization(struct hit *hit);
bool redact_check_url(struct hit *hit);
bool redact_check_pem(struct hit *hit);
bool redact_check_pem_end(struct hit *hit);
bool redact_check_cut(struct hit *hit);
bool redact_check_half(struct hit *hit);
bool redact_check_shown(struct hit *hit);

struct anchor {
    const char *at;
    uint8_t len;
    uint8_t row;
    bool fold;
};

struct user_pattern {
    pcre2_code *utf; /* for texts that are UTF-8 */
    pcre2_code *bytes; /* for others */
};

#define SIEVE_BITS 16

struct redact {
    unsigned char key[REDACT_KEY_BYTES];
    pcre2_code *codes[REDACT_ROWS_MAX];
    struct anchor *anchors; /* by first byte, in lower case */
    size_t anchor_count;
    uint16_t heads[257]; /* anchors of byte b: heads[b] up to heads[b + 1] */
    uint32_t sieve[(1 << SIEVE_BITS) / 32]; /* hashes of three folded bytes that begin an anchor */
    struct user_pattern *users;
    size_t user_count;
};

/* The rows' own part of opening. */
int redact_scan_open(struct redact *redact, struct err *err);
/* The first anchor at or after `from`, or text.len: no row finds anything before it. */
size_t redact_scan_next(const struct redact *redact, struct str text, size_t from);
/* Appends what the rows find, in order. -1: a limit was reached. */
int redact_scan(const struct redact *redact, struct str text, struct spans *out);

int redact_users_open(struct redact *redact, const char *const *extra, struct err *err);
void redact_users_close(struct redact *redact);
/* Appends what the patterns of the configuration find. -1: a limit was reached. */
int redact_users_scan(const struct redact *redact, struct str text, struct spans *out);

/* All findings, in order and apart, on whole characters. -1: a limit was reached. */
int redact_find(const struct redact *redact, struct str text, struct spans *out);
/* Appends one marker; -1 if it does not fit. */
int redact_mark(const struct redact *redact, const char *kind, struct str secret, struct buf *out);
/* The bytes of text from..until, with those spans replaced that begin there. */
int redact_render(const struct redact *redact, struct str text, const struct spans *spans,
                  size_t from, size_t until, struct buf *out);

#endif
