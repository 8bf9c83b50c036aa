/* Renames request fields for people. Results and refusals name JSON fields; a person at the command
 * line sets them by flags. One table. Runs in the cli process; pure. */
#include "cli/term/words.h"

#include <string.h>

#include "base/attr.h"
#include "contract/limits.h"

#define FIELD "limits."

/* Fields without their own flag are set by --limit. */
static const struct {
    enum limits_id id;
    const char *flag, *command;
} rows[] = {
    { LIMITS_TIMEOUT, "-t", ":set timeout" },
    { LIMITS_MEMORY, "-m", NULL },
    { LIMITS_DISK, "--disk", NULL },
    { LIMITS_CPUS, "--cpus", NULL },
    { LIMITS_PIDS, "--pids", NULL },
};

static bool begins(struct str text, const char *name)
{
    size_t len = strlen(name);
    return text.len >= len && memcmp(text.at, name, len) == 0;
}

/* The limit whose field the text begins with; the longest name wins. */
static const struct limits_row *limit_at(struct str text)
{
    const struct limits_row *found = NULL;
    if (!begins(text, FIELD))
        return NULL;
    const struct str name = { text.at + strlen(FIELD), text.len - strlen(FIELD) };
    for (size_t id = 0; id < LIMITS_COUNT; id++) {
        const struct limits_row *row = &limits_rows[id];
        if (begins(name, row->name) && (!found || strlen(row->name) > strlen(found->name)))
            found = row;
    }
    return found;
}

static bool ends_with(const struct buf *text, const char *end)
{
    size_t len = strlen(end);
    return text->len >= len && memcmp(text->at + text->len - len, end, len) == 0;
}

/* A flag is an option, not a field; a prompt's command says so itself. */
static void mend_before(bool command, struct buf *out)
{
    if (ends_with(out, "field '")) {
        out->len -= strlen("field '");
        buf_add_text(out, "option '");
    }
    if (command && ends_with(out, "set "))
        out->len -= strlen("set ");
}

static void add_word(const struct limits_row *limit, bool at_prompt, struct buf *out)
{
    for (size_t i = 0; i < array_len(rows); i++) {
        if (&limits_rows[rows[i].id] != limit)
            continue;
        bool command = at_prompt && rows[i].command;
        mend_before(command, out);
        buf_add_text(out, command ? rows[i].command : rows[i].flag);
        return;
    }
    mend_before(/* command= */ false, out);
    buf_printf(out, "--limit %s", limit->name);
}

void cli_words(struct str text, bool at_prompt, struct buf *out)
{
    while (text.len > 0) {
        /* quota.limits.timeout_s is a bound of a token. */
        const struct limits_row *limit = ends_with(out, ".") ? NULL : limit_at(text);
        size_t taken = limit ? strlen(FIELD) + strlen(limit->name) : 1;
        if (limit)
            add_word(limit, at_prompt, out);
        else
            buf_add(out, text.at, 1);
        text = (struct str){ text.at + taken, text.len - taken };
    }
}
