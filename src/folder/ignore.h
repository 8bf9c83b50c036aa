/* Which entries of a folder a box does not see, and which it cannot change: a table of names that
 * usually hold secrets, then the rules of the folder's own .cupelignore, a subset of .gitignore.
 * Pure. */
#ifndef FOLDER_IGNORE_H
#define FOLDER_IGNORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define IGNORE_FILE ".cupelignore"
#define IGNORE_TEXT_MAX (64u << 10) /* bytes of the file */
#define IGNORE_RULES_MAX 1000
#define IGNORE_RULE_MAX 1000 /* bytes of one rule */

struct ignore_rule {
    char *text; /* the pattern, without the marks around it; heap */
    size_t len;
    bool shows;    /* "!": a match is shown again */
    bool dirs;     /* "/" at its end: folders alone */
    bool whole;    /* it has a slash: the whole path counts, not the name alone */
    bool literal;  /* it has no wildcard */
    bool ending;   /* a literal, which the name ends with */
    const char *why; /* what such a file holds; NULL: a rule of .cupelignore */
};

struct ignore {
    struct ignore_rule *rules;
    size_t count;
    /* Most names match no rule, and two of their bytes show it: bits for the first two of names
     * that rules begin with, and the last two of endings. */
    uint8_t first[8192], last[8192];
    bool any; /* a rule begins with a wildcard: look at every name */
};
#define IGNORE_INIT ((struct ignore){ .rules = NULL })

/* The built-in table, for docs and tests. */
struct ignore_default {
    const char *rule, *why;
};
extern const struct ignore_default ignore_defaults[];
extern const size_t ignore_default_count;

/* Begins with the built-in rules. */
void ignore_init(struct ignore *out);
void ignore_done(struct ignore *ignore);
/* Adds the rules of a .cupelignore; they count more than earlier ones. ERR_INPUT with the line's
 * number for a rule that is not understood: one that is misread would show a secret. */
int ignore_add(struct ignore *ignore, struct str text, struct err *err);
/* Adds one rule that hides this very path. */
void ignore_add_path(struct ignore *ignore, struct str path, const char *why);

/* The last rule that matches an entry, or NULL. `path` is relative, without "./" and "//". */
const struct ignore_rule *ignore_match(const struct ignore *ignore, struct str path, bool is_dir);
static inline bool ignore_hides(const struct ignore *ignore, struct str path, bool is_dir)
{
    const struct ignore_rule *rule = ignore_match(ignore, path, is_dir);
    return rule && !rule->shows;
}
/* The same, and for each folder above: whether a box sees this path at all. */
bool ignore_hides_within(const struct ignore *ignore, struct str path, bool is_dir);

/* Entries that a box may read and never change: what others than the code trust. */
bool ignore_is_kept(struct str path);
bool ignore_is_kept_within(struct str path);

#endif
