/* Fuzz the query of an HTTP request, and each of its values as the number of an event (`from`,
 * Last-Event-ID). Names and values that come out are UTF-8 without NUL, and no name comes twice. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const struct parse_query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        if (!str_is_utf8(str_of(query->names[i])) || !str_is_utf8(str_of(query->values[i])))
            abort();
        for (size_t j = 0; j < i; j++)
            if (strcmp(query->names[i], query->names[j]) == 0)
                abort();
    }
}

/* What is taken for a number is one, digit by digit. */
static void check_number(const char *text, uint64_t least)
{
    uint64_t number = 0, again = 0;
    struct err err = ERR_INIT;
    if (parse_from(str_of(text), "from", least, &number, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.text || !*err.field)
            abort();
        return;
    }
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9' || again > (UINT64_MAX - 9) / 10)
            abort();
        again = again * 10 + (uint64_t)(*at - '0');
    }
    if (again != number || number < least || number >= INT64_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parse_query query;
    struct err err = ERR_INIT;
    if (parse_query((struct str){ (const char *)data, size }, &query, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.text || !*err.field)
            abort();
        return 0;
    }
    if (query.count > PARSE_QUERY_MAX)
        abort();
    check_names(&query);
    for (size_t i = 0; i < query.count; i++)
        check_number(query.values[i], i % 2);
    parse_query_done(&query);
    return 0;
}
