/* Large values of tools, on their way to the driver: in parts, between which other answers go. The
 * driver of the box writes them to a file. Runs in the engine.
 *
 * 1. A part is made when the pipe has taken the one before: one part in a turn of the loop, however
 *    fast the box reads. Parts that a box does not read wait here, and count like other answers.
 * 2. A value leaves at its last part, when the code gives it up, or with its run. */
#include "engine/run/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

#define PART ((size_t)64 << 10)

struct run_large {
    struct run_large *next;
    int64_t number;  /* of the call */
    char *text;      /* the value as JSON, without newlines */
    size_t len, sent;
    char *last;      /* the line after the parts */
};

static void free_first(struct run_large **at)
{
    struct run_large *large = *at;
    *at = large->next;
    free(large->text);
    free(large->last);
    free(large);
}

void run_free_larges(struct engine_run *run)
{
    while (run->larges)
        free_first(&run->larges);
    run->larges_bytes = 0;
}

int run_say_large(struct engine_run *run, int64_t number, struct str value, json_t *files)
{
    size_t room = run->lines.max - run->lines.len - RUN_LINES_ROOM;
    struct run_large **at = &run->larges;
    if (run->lines.len + RUN_LINES_ROOM > run->lines.max || value.len + run->larges_bytes > room)
        return -1;
    while (*at)
        at = &(*at)->next;
    struct run_large *large = *at = buf_alloc_zero(1, sizeof *large);
    own_json rest = json_pack("{s:I, s:O*}", "large", (json_int_t)value.len, "files", files);
    large->number = number;
    large->text = buf_strdup(value);
    large->len = value.len;
    large->last = plan_return_line(number, rest);
    run->larges_bytes += value.len;
    return run_say_line(run, STR(""));
}

bool run_next_part(struct engine_run *run)
{
    struct run_large *large = run->larges;
    if (!large)
        return false;
    size_t left = large->len - large->sent, size = left < PART ? left : PART;
    buf_printf(&run->lines, "+%lld ", (long long)large->number);
    buf_add(&run->lines, large->text + large->sent, size);
    buf_add_text(&run->lines, "\n");
    large->sent += size;
    if (large->sent == large->len) {
        buf_add_text(&run->lines, large->last);
        run->larges_bytes -= large->len;
        free_first(&run->larges);
    }
    return true;
}

bool run_drop_large(struct engine_run *run, int64_t number)
{
    struct run_large **at = &run->larges;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    if (!*at)
        return false;
    run->larges_bytes -= (*at)->len;
    free_first(at);
    return true;
}
