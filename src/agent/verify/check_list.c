/* The checklist by code: each requirement that can be checked gives one CHECK. Process: the
 * task's. Pure. An answer whose form cannot be judged is skipped, never passed. */
#include <strings.h>

#include "agent/verify/check_items.h"
#include "agent/verify/check_scan.h"
#include "agent/verify/checklist.h"
#include "base/attr.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"

#define ANSWER_MAX (128u << 10)

struct verdict {
    const char *outcome;
    struct buf detail;
};

static void say(struct verdict *out, const char *outcome, const char *fmt, ...) attr_printf(3, 4);
static void say(struct verdict *out, const char *outcome, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    out->outcome = outcome;
    out->detail.len = 0;
    buf_add_text(&out->detail, text);
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "*.csv" any of that ending, "*" any; else the path, or its last part. */
static bool is_named(const char *path, const char *want)
{
    if (!strcmp(want, "*"))
        return true;
    if (want[0] == '*') {
        size_t n = strlen(want + 1), len = strlen(path);
        return len > n && strcasecmp(path + len - n, want + 1) == 0;
    }
    return !strcmp(path, want) || !strcasecmp(base_of(path), base_of(want));
}

/* Names without regard to case, spaces and marks: "Total Revenue" is total_revenue. */
static bool same_name(struct str a, struct str b)
{
    size_t i = 0, j = 0;
    for (;;) {
        while (i < a.len && strchr(" _-.", a.at[i]))
            i++;
        while (j < b.len && strchr(" _-.", b.at[j]))
            j++;
        if (i == a.len || j == b.len)
            return i == a.len && j == b.len;
        if (tolower((unsigned char)a.at[i++]) != tolower((unsigned char)b.at[j++]))
            return false;
    }
}

static void check_columns(const json_t *want, const json_t *have, const char *path,
                          struct verdict *out)
{
    size_t i, j;
    json_t *name, *other;
    json_array_foreach (want, i, name) {
        bool found = false;
        json_array_foreach (have, j, other)
            found = found || same_name(json_str(name), json_str(other));
        if (!found) {
            say(out, "fail", "'%.100s' has no column '%.100s'", path, json_string_value(name));
            return;
        }
    }
}

static void check_table(const json_t *check, const char *path, const char *format,
                        struct str content, struct verdict *out)
{
    const json_t *rows = json_object_get(check, "rows");
    const json_t *columns = json_object_get(check, "columns");
    bool counts = json_is_integer(rows), names = json_is_array(columns);
    if (!counts && !names)
        return;
    struct agent_table table;
    agent_table_read(format, content, &table);
    long want = (long)json_integer_value(rows);
    if ((counts && table.rows < 0) || (names && !table.columns))
        say(out, "skip", "'%.100s' opens, but its rows and columns cannot be counted here", path);
    else if (counts && table.rows != want && table.first_is_row != want)
        say(out, "fail", "'%.100s' has %ld rows, not %ld", path, table.rows, want);
    else if (names)
        check_columns(columns, table.columns, path, out);
    json_decref(table.columns);
}

/* A picture that a cell showed is there too, though no file was written. */
static bool was_shown(const struct agent_claim *claim)
{
    size_t i, j, from = agent_steps_from(claim->steps);
    json_t *step, *shown;
    json_array_foreach (claim->steps, i, step) {
        const json_t *results = json_object_get(json_object_get(step, "result"), "results");
        if (i < from || !agent_step_is_kept(step))
            continue;
        json_array_foreach (results, j, shown) {
            const json_t *png = json_object_get(shown, "image/png");
            size_t len = 0;
            own_str bytes = json_is_string(png) ? base64_decode(json_str(png), &len) : NULL;
            own_buf why = BUF_INIT(512);
            if ((bytes && agent_format_check("png", (struct str){ bytes, len }, &why)) ||
                json_is_string(json_object_get(shown, "image/svg+xml")))
                return true;
        }
    }
    return false;
}

static void check_file(const struct agent_claim *claim, const json_t *check, struct verdict *out)
{
    const char *want = json_string_value(json_object_get(check, "file"));
    const char *format = json_string_value(json_object_get(check, "format"));
    size_t i;
    json_t *made;
    bool picture = format && !strcmp(format, "picture");
    say(out, "fail", picture ? "no picture was made" : "'%.200s' was not made", want);
    if (picture && was_shown(claim)) {
        say(out, "pass", "a picture was shown");
        return;
    }
    json_array_foreach (claim->artifacts, i, made) {
        const char *path = json_string_value(json_object_get(made, "path"));
        if (!path || !is_named(path, want) || !strncmp(path, ".cupel/", 7))
            continue;
        struct str content = claim->content ? claim->content(claim->user, path) : STR_NONE;
        own_buf why = BUF_INIT(1024);
        if (!content.len && json_integer_value(json_object_get(made, "size_bytes")) > 0) {
            say(out, "skip", "'%.200s' was made, but its content is not at hand", path);
            continue;
        }
        if (agent_format_check(format ? format : "", content, &why)) {
            say(out, "pass", "'%.200s' is there and opens", path);
            check_table(check, path, format, content, out);
        } else if (!picture) {
            say(out, "fail", "'%.200s' is no %s: %.200s", path, format ? format : "file",
                buf_str(&why).at);
        }
        if (!strcmp(out->outcome, "pass"))
            return;
    }
}

/* Words that could name a thing, and numbers: more than that are not named. */
static size_t things_in(struct str answer)
{
    struct agent_scan_number number;
    struct str word;
    size_t count = 0, at = 0;
    while (agent_scan_word(answer, &at, &word))
        count += !agent_scan_is_common(word);
    at = 0;
    while (agent_scan_number(answer, &at, true, &number))
        count++;
    return count;
}

static void check_items(const struct agent_claim *claim, const json_t *check, struct verdict *out)
{
    size_t want = (size_t)json_integer_value(json_object_get(check, "items"));
    struct agent_items items;
    struct str answer = str_of(claim->answer);
    answer.len = answer.len > ANSWER_MAX ? ANSWER_MAX : answer.len;
    agent_items_count(answer, &items);
    bool each = strcasestr(claim->question, "each") || strcasestr(claim->question, " per ");
    for (size_t i = 0; i < items.lists; i++) {
        if (items.counts[i] == want || (each && want && items.counts[i] % want == 0)) {
            say(out, "pass", "the answer lists %zu", want);
            return;
        }
    }
    if (!items.lists && items.loose == want)
        say(out, "pass", "the answer names %zu", want);
    else if (!items.lists && things_in(answer) < want)
        say(out, "fail", "the answer cannot name %zu: it is too short", want);
    else if (!items.lists)
        say(out, "skip", "what the answer names cannot be counted");
    else if (items.total == want)
        say(out, "pass", "the answer lists %zu", want);
    else if (want == 1)
        say(out, "skip", "one thing need not be a list");
    else
        say(out, "fail", "the answer lists %zu, not %zu", items.counts[0], want);
}

/* A currency or a word, in any of its spellings. */
static bool answer_has(const char *answer, const char *word)
{
    static const char *const same[][5] = {
        { "EUR", "€", "euro" },     { "USD", "$", "dollar" }, { "GBP", "£", "pound" },
        { "JPY", "¥", "yen" },      { "percent", "%", "per cent" }, { "INR", "₹", "rupee" },
    };
    if (strcasestr(answer, word))
        return true;
    for (size_t i = 0; i < array_len(same); i++) {
        bool one = false, found = false;
        for (size_t j = 0; j < array_len(same[i]) && same[i][j]; j++) {
            one = one || !strcasecmp(word, same[i][j]);
            found = found || strcasestr(answer, same[i][j]);
        }
        if (one && found)
            return true;
    }
    return false;
}

static void check_contains(const struct agent_claim *claim, const json_t *check,
                           struct verdict *out)
{
    size_t i;
    json_t *word;
    json_array_foreach (json_object_get(check, "contains"), i, word) {
        if (!answer_has(claim->answer, json_string_value(word))) {
            say(out, "fail", "the answer does not have '%.200s'", json_string_value(word));
            return;
        }
    }
    say(out, "pass", "the answer has what was asked for");
}

static void check_answer(const struct agent_claim *claim, const json_t *check, struct verdict *out)
{
    const char *kind = json_string_value(json_object_get(check, "answer"));
    struct str answer = str_of(claim->answer);
    answer.len = answer.len > ANSWER_MAX ? ANSWER_MAX : answer.len;
    own_buf why = BUF_INIT(512);
    int is = agent_answer_is(kind, answer, claim, &why);
    say(out, is > 0 ? "pass" : is < 0 ? "skip" : "fail", "%.400s", buf_str(&why).at);
}

static void check_sorted(const struct agent_claim *claim, const json_t *check, struct verdict *out)
{
    struct str answer = str_of(claim->answer);
    answer.len = answer.len > ANSWER_MAX ? ANSWER_MAX : answer.len;
    own_buf why = BUF_INIT(512);
    int is =
        agent_answer_is_sorted(json_string_value(json_object_get(check, "sorted")), answer, &why);
    say(out, is > 0 ? "pass" : is < 0 ? "skip" : "fail", "%.400s", buf_str(&why).at);
}

static const struct {
    const char *member;
    void (*check)(const struct agent_claim *claim, const json_t *check, struct verdict *out);
} kinds[] = {
    { "file", check_file },       { "items", check_items },   { "contains", check_contains },
    { "answer", check_answer },   { "sorted", check_sorted },
};

void agent_check_list(const struct agent_claim *claim, json_t *checks)
{
    size_t i;
    json_t *each;
    json_array_foreach (claim->requirements, i, each) {
        const json_t *check = json_object_get(each, "check");
        const char *text = json_string_value(json_object_get(each, "text"));
        for (size_t k = 0; k < array_len(kinds); k++) {
            if (!json_object_get(check, kinds[k].member))
                continue;
            struct verdict verdict = { "skip", BUF_INIT(2048) };
            kinds[k].check(claim, check, &verdict);
            own_buf name = BUF_INIT(1024), repair = BUF_INIT(4096);
            buf_printf(&name, "checklist: %.500s", text ? text : "");
            bool failed = !strcmp(verdict.outcome, "fail");
            if (failed)
                buf_printf(&repair, "Asked for: %.500s. But %s. Do that part and answer again.",
                           text ? text : "", buf_str(&verdict.detail).at);
            agent_checks_add(checks, buf_str(&name).at, verdict.outcome,
                             buf_str(&verdict.detail).at, failed ? buf_str(&repair).at : NULL);
            buf_done(&verdict.detail);
            break;
        }
    }
}
