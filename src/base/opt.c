/* The option parser. Host side; reads the caller's argv alone. It keeps no state and never exits: a
 * wrong command line is an err like any other. */
#include "base/opt.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define HELP_COLUMN 27

struct parse {
    const struct opt *table;
    size_t rows;
    int argc;
    char **argv;
    int next; /* index of the next argument */
    char *into;
    struct err *err;
};

static const char *row_name(const void *table, size_t i)
{
    return ((const struct opt *)table)[i].name;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, drop, change) between two short words; long words count as far apart. */
static size_t distance(const char *a, const char *b)
{
    size_t row[33];
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len >= array_len(row) || b_len >= array_len(row))
        return array_len(row);
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = smaller(change, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_len];
}

const char *opt_nearest(const char *typed, size_t count,
                        const char *(*name_at)(const void *table, size_t i), const void *table)
{
    /* One edit in three letters is a slip; more is another word. */
    size_t best = 1 + strlen(typed) / 3;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name = name_at(table, i);
        bool begins = strlen(typed) >= 3 && strncmp(name, typed, strlen(typed)) == 0;
        size_t d = begins ? 0 : distance(typed, name);
        if (d < best || (d == best && !nearest)) {
            best = d;
            nearest = name;
        }
    }
    return nearest;
}

static const struct opt *find_long(const struct parse *p, struct str name)
{
    for (size_t i = 0; i < p->rows; i++)
        if (str_is(name, p->table[i].name))
            return &p->table[i];
    return NULL;
}

static const struct opt *find_letter(const struct parse *p, char letter)
{
    for (size_t i = 0; i < p->rows; i++)
        if (p->table[i].letter == letter)
            return &p->table[i];
    return NULL;
}

static void list_add(struct opt_list *list, const char *text)
{
    list->at = buf_list_room(list->at, list->count, sizeof *list->at);
    list->at[list->count++] = text;
}

/* Decimal digits with at most one point; no sign, no exponent, no "inf". */
static bool read_number(const char *text, double *out)
{
    size_t digits = strspn(text, "0123456789");
    size_t all = digits;
    if (text[all] == '.') {
        size_t fraction = strspn(text + all + 1, "0123456789");
        digits += fraction;
        all += 1 + fraction;
    }
    if (digits == 0 || digits > 18 || text[all] != 0)
        return false;
    *out = strtod(text, NULL);
    return true;
}

static int store_number(const struct parse *p, const struct opt *row, const char *text)
{
    struct opt_number *number = (struct opt_number *)(void *)(p->into + row->offset);
    if (!read_number(text, &number->value)) {
        err_set(p->err, ERR_USAGE, "option '--%s' takes a number, not '%.80s'", row->name, text);
        err_hint(p->err, "write for example --%s 2 or --%s 0.5", row->name, row->name);
        return -1;
    }
    number->given = true;
    return 0;
}

static int store_bytes(const struct parse *p, const struct opt *row, const char *text)
{
    struct opt_number *number = (struct opt_number *)(void *)(p->into + row->offset);
    uint64_t bytes;
    /* Above 2^53 a double is no longer exact. */
    if (!str_to_bytes(str_of(text), &bytes) || bytes > (UINT64_C(1) << 53)) {
        err_set(p->err, ERR_USAGE, "option '--%s' takes a size, not '%.80s'", row->name, text);
        err_hint(p->err, "write for example --%s 512M or --%s 2G", row->name, row->name);
        return -1;
    }
    number->given = true;
    number->value = (double)bytes;
    return 0;
}

static int store_flag(const struct parse *p, const struct opt *row, const char *text)
{
    (void)text;
    *(bool *)(void *)(p->into + row->offset) = true;
    return 0;
}

static int store_text(const struct parse *p, const struct opt *row, const char *text)
{
    *(const char **)(void *)(p->into + row->offset) = text;
    return 0;
}

static int store_list(const struct parse *p, const struct opt *row, const char *text)
{
    list_add((struct opt_list *)(void *)(p->into + row->offset), text);
    return 0;
}

static int (*const store[])(const struct parse *p, const struct opt *row, const char *text) = {
    [OPT_FLAG] = store_flag,     [OPT_TEXT] = store_text,   [OPT_LIST] = store_list,
    [OPT_NUMBER] = store_number, [OPT_BYTES] = store_bytes,
};

/* The value is what follows in the same argument, or the next argument. */
static int take_value(struct parse *p, const struct opt *row, const char *attached)
{
    const char *value = attached;
    if (!value && p->next < p->argc)
        value = p->argv[p->next++];
    if (!value)
        return err_set(p->err, ERR_USAGE, "option '--%s' needs a value %s", row->name, row->arg);
    return store[row->kind](p, row, value);
}

static int parse_long(struct parse *p, const char *text)
{
    const char *equals = strchr(text, '=');
    struct str name = { text, equals ? (size_t)(equals - text) : strlen(text) };
    const struct opt *row = find_long(p, name);
    if (!row) {
        own_buf typed = BUF_INIT(64);
        buf_printf(&typed, "%.*s", (int)smaller(name.len, 40), name.at);
        const char *near = opt_nearest(buf_str(&typed).at, p->rows, row_name, p->table);
        err_set(p->err, ERR_USAGE, "unknown option '--%s'", buf_str(&typed).at);
        if (near)
            err_hint(p->err, "did you mean --%s?", near);
        return -1;
    }
    if (row->kind != OPT_FLAG)
        return take_value(p, row, equals ? equals + 1 : NULL);
    if (equals)
        return err_set(p->err, ERR_USAGE, "option '--%s' takes no value, but got '%.80s'",
                       row->name, equals + 1);
    return store[OPT_FLAG](p, row, NULL);
}

static int parse_letters(struct parse *p, const char *text)
{
    for (; *text; text++) {
        const struct opt *row = find_letter(p, *text);
        if (!row) {
            bool plain = *text > ' ' && *text < 0x7f;
            return err_set(p->err, ERR_USAGE, "unknown option '-%c'", plain ? *text : '?');
        }
        if (row->kind != OPT_FLAG)
            return take_value(p, row, text[1] ? text + 1 : NULL);
        store[OPT_FLAG](p, row, NULL);
    }
    return 0;
}

/* `ends`: the first operand ends the options. */
static int parse_all(const struct opt *table, size_t rows, int argc, char **argv, void *into,
                     bool ends, struct opt_operands *out, struct err *err)
{
    struct parse p = { .table = table, .rows = rows, .argc = argc, .argv = argv, .into = into,
                       .err = err };
    size_t operands = 0;
    bool ended = false;
    while (p.next < argc) {
        char *text = argv[p.next++];
        int failed = 0;
        if (ended || text[0] != '-' || text[1] == 0)
            argv[operands++] = text; /* never beyond p.next: the overwritten argument was read */
        else if (strcmp(text, "--") == 0)
            ended = true;
        else if (text[1] == '-')
            failed = parse_long(&p, text + 2);
        else
            failed = parse_letters(&p, text + 1);
        if (failed) {
            if (operands > 0 && !err->hint[0])
                err_hint(err, "write -- before operands that begin with a dash");
            return -1;
        }
        ended = ended || (ends && operands > 0);
    }
    out->at = argv;
    out->count = operands;
    return 0;
}

int opt_parse(const struct opt *table, size_t rows, int argc, char **argv, void *into,
              struct opt_operands *out, struct err *err)
{
    return parse_all(table, rows, argc, argv, into, /* ends= */ false, out, err);
}

int opt_parse_command(const struct opt *table, size_t rows, int argc, char **argv, void *into,
                      struct opt_operands *out, struct err *err)
{
    return parse_all(table, rows, argc, argv, into, /* ends= */ true, out, err);
}

void opt_done(const struct opt *table, size_t rows, void *into)
{
    for (size_t i = 0; i < rows; i++) {
        if (table[i].kind != OPT_LIST)
            continue;
        struct opt_list *list = (struct opt_list *)(void *)((char *)into + table[i].offset);
        free(list->at);
        *list = (struct opt_list){ 0 };
    }
}

void opt_print_help(const struct opt *table, size_t rows, FILE *to)
{
    for (size_t i = 0; i < rows; i++) {
        char left[64];
        char letter[8] = "    ";
        if (table[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", table[i].letter);
        snprintf(left, sizeof left, "  %s--%s%s%s", letter, table[i].name, table[i].arg ? " " : "",
                 table[i].arg ? table[i].arg : "");
        int width = (int)strlen(left);
        if (width >= HELP_COLUMN)
            fprintf(to, "%s\n%*s%s\n", left, HELP_COLUMN, "", table[i].help);
        else
            fprintf(to, "%-*s%s\n", HELP_COLUMN, left, table[i].help);
    }
}
