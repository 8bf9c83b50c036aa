/* Bounds and expiry of a new token, from the words of the command line. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/term/span.h"
#include "cli/token/token_options.h"

#define LONGEST_S (INT64_C(100) * 366 * 86400)
#define DAY_TEXT "T00:00:00Z"

/* --- expiry --- */

static bool read_moment(const char *text, int64_t *out)
{
    char whole[TOKENS_TIME_ROOM];
    int n = snprintf(whole, sizeof whole, "%.22s%s", text,
                     strlen(text) == strlen("2027-01-31") ? DAY_TEXT : "");
    return n > 0 && (size_t)n < sizeof whole && tokens_read_time(str_of(whole), out);
}

int cli_token_expiry(const char *text, int64_t now, int64_t *out, struct err *err)
{
    static const char bound[] = "a time to come: 12h, 30d, 8w, 2027-01-31";
    int64_t span = 0, at = 0;
    *out = TOKENS_NEVER;
    if (!text)
        return 0;
    if (cli_span_read(str_of(text), LONGEST_S, &span))
        at = now + span;
    else if (!read_moment(text, &at))
        return err_input(err, "expires_at", text, bound, "option '--expires' is '%.80s', not %s",
                         text, bound);
    if (at <= now || at > now + LONGEST_S)
        return err_input(err, "expires_at", text, bound,
                         "option '--expires' is '%.80s', which is past or more than 100 years away",
                         text);
    *out = at;
    return 0;
}

/* --- bounds --- */

static int set_number(struct tokens_quota *out, enum tokens_quota_id id, const char *option,
                      const struct opt_number *number, struct err *err)
{
    double value = number->value;
    if (!number->given)
        return 0;
    own_json given = value < 1e18 && value == (double)(int64_t)value
                         ? json_integer((json_int_t)value)
                         : json_real(value);
    return tokens_quota_set(out, id, given, err) < 0 ? err_wrap(err, "option '--%s'", option) : 0;
}

/* "60/min", or "60". */
static int set_rate(struct tokens_quota *out, const char *text, struct err *err)
{
    static const char tail[] = "/min";
    struct str number = str_of(text);
    uint64_t count;
    if (!text)
        return 0;
    if (number.len > sizeof tail - 1 && strcmp(text + number.len - (sizeof tail - 1), tail) == 0)
        number.len -= sizeof tail - 1;
    own_json given = str_to_u64(number, &count) && count < INT64_MAX
                         ? json_integer((json_int_t)count)
                         : json_text(str_of(text));
    if (tokens_quota_set(out, TOKENS_RUNS_A_MINUTE, given, err) == 0)
        return 0;
    err_hint(err, "write for example --rate 60/min");
    return err_wrap(err, "option '--rate'");
}

/* "timeout_s=60", "memory_bytes=512M". */
static int set_limit(struct tokens_quota *out, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    char name[48];
    if (!equals || (size_t)(equals - text) >= sizeof name) {
        err_set(err, ERR_USAGE, "option '--limit' takes NAME=NUMBER, not '%.80s'", text);
        err_hint(err, "write for example --limit timeout_s=60 --limit memory_bytes=512M");
        return -1;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    struct str value = str_of(equals + 1);
    struct err none = ERR_INIT;
    uint64_t bytes;
    own_json given = strstr(name, "_bytes") && str_to_bytes(value, &bytes) && bytes < INT64_MAX
                         ? json_integer((json_int_t)bytes)
                         : json_read(value, 64, &none);
    if (!given)
        given = json_text(value);
    return tokens_quota_set_limit(out, name, given, err) < 0 ? err_wrap(err, "option '--limit'")
                                                             : 0;
}

static int add_words(struct tokens_quota *out, enum tokens_list_id id, const char *option,
                     const struct opt_list *list, struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        own_json word = json_text(str_of(list->at[i]));
        if (tokens_quota_add_word(out, id, word, err) < 0)
            return err_wrap(err, "option '--%s'", option);
    }
    return 0;
}

int cli_token_quota(const struct cli_token_options *o, struct tokens_quota *out, struct err *err)
{
    tokens_quota_init(out);
    int failed = set_number(out, TOKENS_RUNS_AT_ONCE, "runs", &o->runs, err) < 0 ||
                 set_rate(out, o->rate, err) < 0 ||
                 set_number(out, TOKENS_CPU_S_A_DAY, "cpu-s-a-day", &o->cpu_s, err) < 0 ||
                 set_number(out, TOKENS_SESSIONS, "sessions", &o->sessions, err) < 0 ||
                 set_number(out, TOKENS_STORED_BYTES, "stored", &o->stored, err) < 0 ||
                 add_words(out, TOKENS_PROFILES, "profile", &o->profiles, err) < 0 ||
                 add_words(out, TOKENS_IMAGES, "image", &o->images, err) < 0 ||
                 add_words(out, TOKENS_TOOLS, "tool", &o->tools, err) < 0;
    for (size_t i = 0; !failed && i < o->limits.count; i++)
        failed = set_limit(out, o->limits.at[i], err) < 0;
    if (failed)
        tokens_quota_done(out);
    return failed ? -1 : 0;
}
