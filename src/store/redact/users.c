/* The patterns of the configuration, which have no literal to look for: PCRE2 searches the whole
 * text. Pure; any thread.
 * Anyone's pattern meets anyone's text, so steps are counted over the whole text: PCRE2's own limit
 * begins anew at each place. A callout before each item of the pattern counts one step, and one
 * more for every few bytes that the search moved since the last. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/redact/redact_int.h"

#define STEPS_PER_BYTE 64
#define STEPS_FREE 1000000
#define BYTES_PER_STEP 8
#define MATCH_LIMIT 1000000
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT_KIB 8192

#define OPTIONS (PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C)

static int refuse(const char *pattern, int code, size_t offset, struct err *err)
{
    char said[160] = "", value[160];
    json_t *shown = json_text(str_of(pattern));
    json_brief(shown, value, sizeof value);
    json_decref(shown);
    pcre.get_error_message(code, (PCRE2_UCHAR *)said, sizeof said);
    return err_input(err, "redact", value, "an array of patterns of PCRE2",
                     "pattern %s: %s at offset %zu", value, said, offset);
}

static pcre2_code *compile(const char *pattern, uint32_t options, struct err *err)
{
    int code;
    size_t offset;
    pcre2_code *compiled = pcre.compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                        OPTIONS | options, &code, &offset, NULL);
    if (!compiled)
        refuse(pattern, code, offset, err);
    return compiled;
}

int redact_users_open(struct redact *redact, const char *const *extra, struct err *err)
{
    for (size_t i = 0; extra && extra[i]; i++) {
        redact->users = buf_list_room(redact->users, i, sizeof *redact->users);
        struct user_pattern *user = &redact->users[redact->user_count++];
        user->utf = compile(extra[i], PCRE2_UTF, err);
        user->bytes = user->utf ? compile(extra[i], PCRE2_NEVER_UTF, err) : NULL;
        if (!user->bytes)
            return -1;
    }
    return 0;
}

void redact_users_close(struct redact *redact)
{
    for (size_t i = 0; i < redact->user_count; i++) {
        if (redact->users[i].utf)
            pcre.code_free(redact->users[i].utf);
        if (redact->users[i].bytes)
            pcre.code_free(redact->users[i].bytes);
    }
    free(redact->users);
}

struct steps {
    size_t left, place;
};

static int count_step(pcre2_callout_block *block, void *data)
{
    struct steps *steps = data;
    size_t place = block->current_position;
    size_t moved = place > steps->place ? place - steps->place : steps->place - place;
    size_t cost = 1 + moved / BYTES_PER_STEP;
    steps->place = place;
    if (cost > steps->left)
        return PCRE2_ERROR_MATCHLIMIT;
    steps->left -= cost;
    return 0;
}

static int scan_one(const pcre2_code *code, struct str text, pcre2_match_data *data,
                    pcre2_match_context *context, struct spans *out)
{
    size_t at = 0;
    while (at < text.len) {
        int count = pcre.match(code, (PCRE2_SPTR)text.at, text.len, at,
                               PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK, data, context);
        if (count == PCRE2_ERROR_NOMATCH)
            return 0;
        if (count < 0)
            return -1;
        const size_t *bounds = pcre.get_ovector_pointer(data);
        /* \K in a pattern may move the beginning. */
        if (bounds[1] <= at || bounds[0] >= bounds[1])
            return -1;
        spans_add(out, bounds[0] > at ? bounds[0] : at, bounds[1], "pattern");
        at = bounds[1];
    }
    return 0;
}

int redact_users_scan(const struct redact *redact, struct str text, struct spans *out)
{
    if (!redact->user_count || !text.len)
        return 0;
    bool utf = str_is_utf8(text);
    pcre2_match_data *data = pcre.match_data_create(1, NULL);
    pcre2_match_context *context = pcre.match_context_create(NULL);
    int done = 0;
    if (!data || !context)
        abort(); /* out of memory */
    pcre.set_match_limit(context, MATCH_LIMIT);
    pcre.set_depth_limit(context, DEPTH_LIMIT);
    pcre.set_heap_limit(context, HEAP_LIMIT_KIB);
    for (size_t i = 0; i < redact->user_count && done == 0; i++) {
        struct steps steps = { STEPS_FREE + STEPS_PER_BYTE * text.len, 0 };
        pcre.set_callout(context, count_step, &steps);
        const struct user_pattern *user = &redact->users[i];
        done = scan_one(utf ? user->utf : user->bytes, text, data, context, out);
    }
    pcre.match_data_free(data);
    pcre.match_context_free(context);
    return done;
}
