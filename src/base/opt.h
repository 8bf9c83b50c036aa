/* Options as tables: the same rows parse argv, print --help and feed shell completions. GNU style:
 * --name=value, --name value, -xVALUE, -x VALUE, clustered flags (-qv), options and operands in any
 * order, `--` ends options. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum opt_kind {
    OPT_FLAG,   /* bool: true once given; takes no value */
    OPT_TEXT,   /* const char *: the last one given */
    OPT_LIST,   /* struct opt_list: all of them, in order */
    OPT_NUMBER, /* struct opt_number: a decimal number, a fraction allowed */
    OPT_BYTES,  /* struct opt_number: "512", "64K", "512M", "2G" */
};

struct opt_list {
    const char **at; /* heap; the texts belong to argv */
    size_t count;
};

struct opt_number {
    bool given;
    double value;
};

struct opt {
    const char *name;   /* long name without dashes */
    char letter;        /* or 0 */
    const char *arg;    /* name of the value in --help, NULL for a flag */
    enum opt_kind kind;
    size_t offset;      /* of the member in the struct that opt_parse fills */
    const char *help;   /* one line */
};

/* The operands, in order, in the caller's array. */
struct opt_operands {
    char **at;
    size_t count;
};

/* Parse argv[0..argc) (without the command's own name) into the struct at
 * `into`, which the caller has zeroed. argv is reordered so that operands point
 * into it. ERR_USAGE naming the option and the value otherwise. */
int opt_parse(const struct opt *table, size_t rows, int argc, char **argv, void *into,
              struct opt_operands *out, struct err *err);
/* The same where the operands are another program's command line: the first one ends the
 * options. */
int opt_parse_command(const struct opt *table, size_t rows, int argc, char **argv, void *into,
                      struct opt_operands *out, struct err *err);
/* Free the lists of the table's OPT_LIST rows. */
void opt_done(const struct opt *table, size_t rows, void *into);

/* The rows as --help shows them, one option a line, columns aligned. */
void opt_print_help(const struct opt *table, size_t rows, FILE *to);

/* The name nearest to a mistyped one, or NULL when none is close. name_at(i) gives the `count`
 * names. */
const char *opt_nearest(const char *typed, size_t count,
                        const char *(*name_at)(const void *table, size_t i), const void *table);

#endif
