/* Wishes of a build: names of packages with versions, and files of requirements. Pure.
 * All of it is outside text: a want holds only characters that no package tool takes for an option,
 * a path or an address. */
#ifndef IMAGE_MAKE_WANT_H
#define IMAGE_MAKE_WANT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

#define MAKE_WANTS_MAX 2000 /* of one build, all kinds */
#define MAKE_WANT_TEXT 1024 /* bytes of one */
#define MAKE_NAME_ROOM 216  /* npm's longest name, and a NUL */
#define MAKE_VERSION_ROOM 128
#define MAKE_REQUIREMENTS_MAX ((size_t)1 << 20) /* bytes of a file of requirements */

enum make_kind { MAKE_PIP, MAKE_NPM, MAKE_APT, MAKE_KINDS };
extern const char *const make_kind_names[MAKE_KINDS]; /* "pip", "npm", "apt": options and members */

struct make_want {
    enum make_kind kind;
    bool pinned; /* exactly one version fits */
    bool hashed; /* a requirement with --hash */
    char name[MAKE_NAME_ROOM]; /* as its index compares it: of pip in lower case, with "-" */
    char *text; /* as its tool takes it */
};

struct make_wants {
    struct make_want *at;
    size_t count;
};
void make_wants_done(struct make_wants *wants);
#define own_make_wants attr_cleanup(make_wants_done) struct make_wants

/* "polars>=1", "pandas[excel]==2.*; python_version > '3.8'"; "zod", "@scope/name@^4"; "ripgrep",
 * "ripgrep=13.0.0-4". ERR_INPUT of field "pip", "npm" or "apt" otherwise. */
int make_wants_add(struct make_wants *wants, enum make_kind kind, struct str text, struct err *err);
/* The lines of a requirements.txt. Options other than --hash are refused, with the number of their
 * line: `name` is the file's. */
int make_wants_add_file(struct make_wants *wants, struct str text, const char *name,
                        struct err *err);

/* "Foo_Bar.baz" is "foo-bar-baz" to every index of Python's. False for what is no name. */
bool make_name_python(struct str text, char out[MAKE_NAME_ROOM]);
/* One of `kind`, as written and not longer than a name. */
bool make_name_valid(enum make_kind kind, struct str text);
/* Letters, digits and . + ! - _ ~ : alone, not empty, begins with a letter or digit. */
bool make_version_valid(struct str text);

#endif
