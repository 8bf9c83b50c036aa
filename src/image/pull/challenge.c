/* WWW-Authenticate, in the forms that registries send. Runs in the cli process; pure.
 * A header is a list of challenges, and a challenge is a scheme with a list of parameters, all
 * parted by the same commas: a word with "=" after it is a parameter, one without is a scheme. */
#include "image/pull/challenge.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

struct reader {
    struct str rest;
    struct pull_challenge now; /* the challenge that is read */
    bool is_basic, is_bearer, spoiled;
};

static const struct {
    const char *name;
    size_t at, room;
} fields[] = {
#define FIELD(name) \
    { #name, offsetof(struct pull_challenge, name), sizeof(((struct pull_challenge *)0)->name) }
    FIELD(realm),
    FIELD(service),
    FIELD(scope),
#undef FIELD
};

static void skip(struct reader *reader, const char *set)
{
    while (reader->rest.len > 0 && reader->rest.at[0] && strchr(set, reader->rest.at[0])) {
        reader->rest.at++;
        reader->rest.len--;
    }
}

static struct str read_word(struct reader *reader)
{
    size_t len = 0;
    while (len < reader->rest.len && reader->rest.at[len] &&
           !strchr(" \t,=\"", reader->rest.at[len]))
        len++;
    struct str word = { reader->rest.at, len };
    reader->rest.at += len;
    reader->rest.len -= len;
    return word;
}

/* One character of a quoted text; false at its end. */
static bool read_quoted(struct reader *reader, char *out)
{
    struct str *rest = &reader->rest;
    if (rest->len == 0)
        return false;
    size_t used = rest->at[0] == '\\' && rest->len > 1 ? 2 : 1;
    *out = rest->at[used - 1];
    bool end = used == 1 && *out == '"';
    rest->at += used;
    rest->len -= used;
    return !end;
}

/* The value after "=" into `out`, "" if it is empty. False if it does not fit or holds a control
 * character. */
static bool read_value(struct reader *reader, char *out, size_t room)
{
    size_t len = 0;
    bool good = true;
    skip(reader, " \t");
    if (reader->rest.len > 0 && reader->rest.at[0] == '"') {
        char c;
        reader->rest.at++;
        reader->rest.len--;
        while (read_quoted(reader, &c)) {
            good = good && len + 1 < room && !iscntrl((unsigned char)c);
            if (good)
                out[len++] = c;
        }
    } else {
        struct str word = read_word(reader);
        good = word.len < room;
        for (size_t i = 0; good && i < word.len; i++) {
            good = !iscntrl((unsigned char)word.at[i]);
            out[len++] = word.at[i];
        }
    }
    out[good ? len : 0] = 0;
    return good;
}

static void read_parameter(struct reader *reader, struct str name)
{
    char value[2048];
    bool good = read_value(reader, value, sizeof value);
    for (size_t i = 0; i < array_len(fields); i++) {
        if (name.len != strlen(fields[i].name) ||
            strncasecmp(name.at, fields[i].name, name.len) != 0)
            continue;
        if (!good || strlen(value) >= fields[i].room)
            reader->spoiled = true;
        else
            memcpy((char *)&reader->now + fields[i].at, value, strlen(value) + 1);
    }
}

static void end_challenge(struct reader *reader, struct pull_challenge *out)
{
    if (reader->is_basic)
        out->basic = true;
    if (reader->is_bearer && !reader->spoiled && !out->bearer && reader->now.realm[0]) {
        bool basic = out->basic;
        *out = reader->now;
        out->basic = basic;
        out->bearer = true;
    }
    reader->now = (struct pull_challenge){ 0 };
    reader->is_basic = reader->is_bearer = reader->spoiled = false;
}

static bool is_scheme(struct str word, const char *name)
{
    return word.len == strlen(name) && strncasecmp(word.at, name, word.len) == 0;
}

void pull_challenge_add(struct pull_challenge *challenge, struct str header)
{
    struct reader reader = { .rest = header };
    while (skip(&reader, " \t,="), reader.rest.len > 0) {
        size_t before = reader.rest.len;
        struct str word = read_word(&reader);
        skip(&reader, " \t");
        bool parameter = reader.rest.len > 0 && reader.rest.at[0] == '=';
        if (parameter) {
            reader.rest.at++;
            reader.rest.len--;
            read_parameter(&reader, word);
        } else if (word.len > 0) {
            end_challenge(&reader, challenge);
            reader.is_basic = is_scheme(word, "basic");
            reader.is_bearer = is_scheme(word, "bearer");
        }
        if (reader.rest.len == before) { /* a quote or a NUL out of place */
            reader.rest.at++;
            reader.rest.len--;
        }
    }
    end_challenge(&reader, challenge);
}
