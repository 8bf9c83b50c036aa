/* Fuzz the text of a search of records, the place of a page and a time. The expression for FTS5 has
 * quotes in pairs, and outside of them nothing but spaces and stars: no byte of the text is syntax.
 * A page is accepted only where it was written for that list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "store/records/look_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const struct err *err)
{
    if (err->kind != ERR_INPUT || !*err->text || !*err->field || !str_is_utf8(str_of(err->text)))
        abort();
}

static void check_words(struct str text)
{
    own_buf match = BUF_INIT(LOOK_MATCH_ROOM);
    struct err err = ERR_INIT;
    bool inside = false;
    size_t terms = 0;
    if (look_words(text, &match, &err) < 0) {
        check_refusal(&err);
        return;
    }
    for (size_t i = 0; i < match.len; i++) {
        char c = match.at[i];
        if (c == '"')
            terms += inside = !inside;
        else if (!inside && c != ' ' && c != '*')
            abort();
        else if (c == '\0')
            abort();
    }
    if (inside || terms < 1 || terms > LOOK_TERMS_MAX || !str_is_utf8(buf_str(&match)))
        abort();
}

static void check_tag(const char *text)
{
    own_buf tag = BUF_INIT(4 * (strlen(text) + 8));
    if (!look_tag(&tag, 'o', text))
        return;
    for (size_t i = 1; i + 1 < tag.len; i++)
        if (strchr("\"*:() {}^+-", tag.at[i]))
            abort();
}

static void check_page(const char *text)
{
    const struct look_filter filter = { .owner = "k_a", .text = text };
    char sum[HASH_HEX_ROOM], page[LOOK_PAGE_ROOM];
    struct err err = ERR_INIT;
    int64_t n = (int64_t)strlen(text) * 7919, got = -1;
    look_filter_sum(&filter, sum);
    if (look_page_read(STR("key"), text, sum, &got, &err) == 0)
        abort(); /* nobody wrote it */
    check_refusal(&err);
    look_page_write(STR("key"), n, sum, page);
    err = ERR_INIT;
    if (look_page_read(STR("key"), page, sum, &got, &err) < 0 || got != n)
        abort();
    if (look_page_read(STR("other"), page, sum, &got, &err) == 0)
        abort();
}

static void check_time(const char *text)
{
    struct err err = ERR_INIT;
    int64_t ms = 0;
    if (look_time("since", text, 1794858985000, &ms, &err) < 0)
        check_refusal(&err);
    else if (ms < 1 || ms > 253402300800000 + 86400000)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_words((struct str){ (const char *)data, size });
    own_str text = buf_strdup((struct str){ (const char *)data, size });
    if (!str_is_utf8(str_of(text)))
        return 0; /* a parameter of a request is UTF-8 without NUL */
    check_tag(text);
    check_page(text);
    check_time(text);
    return 0;
}
