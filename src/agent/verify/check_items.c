/* Lists and tables of an answer. Process: the task's. Pure. */
#include "agent/verify/check_items.h"

#include "agent/verify/check_scan.h"
#include "base/err.h"
#include "base/json.h"

bool agent_items_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool agent_items_is_row(struct str line)
{
    size_t bars = 0;
    line = agent_scan_trim(line);
    for (size_t i = 0; i < line.len; i++)
        bars += line.at[i] == '|';
    return bars >= 2 || (bars == 1 && line.len && line.at[0] != '|' &&
                         memchr(line.at, '|', line.len - 1) && agent_items_is_rule(line));
}

bool agent_items_is_rule(struct str line)
{
    bool dash = false;
    for (size_t i = 0; i < line.len; i++) {
        if (!strchr("|-:+= ", line.at[i]) || !line.at[i])
            return false;
        dash = dash || line.at[i] == '-';
    }
    return dash;
}

struct str agent_items_item(struct str line)
{
    struct str at = agent_scan_trim(line);
    size_t n = 0;
    while (n < at.len && at.at[n] == '*' && n < 2) /* **1.** */
        n++;
    size_t digits = n, stars = n;
    while (digits < at.len && at.at[digits] >= '0' && at.at[digits] <= '9' && digits - n < 4)
        digits++;
    bool numbered = digits > n && digits + 1 < at.len && strchr(".)", at.at[digits]) &&
                    strchr(" *\t", at.at[digits + 1]) && at.at[digits];
    bool bullet = at.len > 2 && stars < 2 &&
                  (at.at[0] == '-' || at.at[0] == '*' || at.at[0] == '+') && at.at[1] == ' ';
    bool round = at.len > 4 && !memcmp(at.at, "\xe2\x80\xa2", 3);
    size_t skip = numbered ? digits + 1 : bullet ? 2 : round ? 3 : 0;
    if (!skip)
        return STR_NONE;
    return agent_scan_trim((struct str){ at.at + skip, at.len - skip });
}

static void end_list(struct agent_items *out, size_t count)
{
    if (count && out->lists < AGENT_ITEMS_LISTS_MAX)
        out->counts[out->lists++] = count;
    out->total += count;
}

struct counting {
    size_t items, rows;
    size_t indent; /* of the list's first item */
    size_t blank;
};

static void count_line(struct counting *now, struct str line, struct agent_items *out)
{
    struct str item = agent_items_item(line);
    size_t indent = 0;
    while (indent < line.len && (line.at[indent] == ' ' || line.at[indent] == '\t'))
        indent++;
    if (agent_items_is_row(line)) {
        bool rule = agent_items_is_rule(line);
        now->rows = rule ? 0 : now->rows + 1;
    } else if (now->rows) {
        end_list(out, now->rows);
        now->rows = 0;
    }
    if (item.at) {
        now->indent = now->items ? now->indent : indent;
        now->items += indent <= now->indent;
        now->blank = 0;
    } else if (indent == line.len) {
        now->blank++;
    } else if (now->items && (now->blank || indent <= now->indent)) {
        end_list(out, now->items);
        now->items = 0;
    }
}

/* "A, B, C and D." One sentence, short names; 0: it is prose, or there is more behind it. */
static size_t count_commas(struct str rest)
{
    size_t items = 1, words = 0;
    for (size_t i = 0; i < rest.len; i++) {
        char c = rest.at[i];
        bool stop = c == '\n' || c == ';' || c == ':' ||
                    (c == '.' && (i + 1 == rest.len || rest.at[i + 1] == ' '));
        if (stop && agent_scan_trim((struct str){ rest.at + i, rest.len - i }).len > 1)
            return 0; /* which of it is the list? */
        bool comma = c == ',' && i + 1 < rest.len && rest.at[i + 1] == ' ';
        bool and = rest.len - i > 5 && !memcmp(rest.at + i, " and ", 5);
        if (comma || (and && !(i > 0 && rest.at[i - 1] == ','))) {
            items++;
            words = 0;
        }
        words += c == ' ';
        if (words > 7)
            return 0; /* prose */
    }
    return items > 1 ? items : 0;
}

void agent_items_count(struct str answer, struct agent_items *out)
{
    *out = (struct agent_items){ 0 };
    struct str whole = agent_scan_trim(answer);
    if (whole.len && whole.at[0] == '[') {
        struct err err = ERR_INIT;
        own_json value = json_read(whole, 1u << 20, &err);
        if (value) {
            end_list(out, json_array_size(value));
            return;
        }
    }
    struct counting now = { 0 };
    for (struct str rest = answer; rest.len;) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        count_line(&now, (struct str){ rest.at, len }, out);
        rest.at += len + (end != NULL);
        rest.len -= len + (end != NULL);
    }
    end_list(out, now.items);
    end_list(out, now.rows);
    const char *colon = !out->lists && whole.len ? memchr(whole.at, ':', whole.len) : NULL;
    if (colon)
        end_list(out, count_commas(
                          (struct str){ colon + 1, whole.len - (size_t)(colon + 1 - whole.at) }));
    else if (!out->lists)
        out->loose = count_commas(whole);
}
