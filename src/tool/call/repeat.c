/* The memory of calls that stay done: for each session its calls, and its ways back. Runs in the
 * serve process; pure. */
#include "tool/call/repeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

#define SESSION_ROOM 32
#define STEP 16 /* places that a list grows by */

/* That cell did not begin from the state of the cell before it. */
struct back {
    int64_t cell, base;
};

struct memory {
    struct memory *next;
    char session[SESSION_ROOM];
    struct repeats_call *calls; /* in the order of their ends */
    size_t call_count;
    struct back *backs; /* in the order of the cells */
    size_t back_count;
};

struct repeats {
    struct memory *all;
};

struct repeats *repeats_new(void)
{
    return buf_alloc_zero(1, sizeof(struct repeats));
}

static struct memory **find(struct repeats *repeats, const char *session)
{
    struct memory **at = &repeats->all;
    while (*at && strcmp((*at)->session, session) != 0)
        at = &(*at)->next;
    return at;
}

static void free_at(struct memory **at)
{
    struct memory *memory = *at;
    *at = memory->next;
    free(memory->calls);
    free(memory->backs);
    free(memory);
}

void repeats_forget(struct repeats *repeats, const char *session)
{
    struct memory **at = find(repeats, session);
    if (*at)
        free_at(at);
}

void repeats_free(struct repeats *repeats)
{
    while (repeats && repeats->all)
        free_at(&repeats->all);
    free(repeats);
}

void repeats_same(struct str code, struct str tool, const json_t *arguments,
                  char out[HASH_HEX_ROOM])
{
    own_json call = json_pack("[o, o, O]", json_text(code), json_text(tool),
                              (json_t *)(uintptr_t)arguments);
    own_str text = json_write(call, JSON_COMPACT | JSON_SORT_KEYS);
    hash_hex(text ? str_of(text) : STR(""), out);
}

/* The list with room for one more. */
static void *grown(void *list, size_t count, size_t size)
{
    if (count % STEP != 0)
        return list;
    void *larger = buf_alloc((count + STEP) * size);
    if (count > 0)
        memcpy(larger, list, count * size);
    free(list);
    return larger;
}

/* --- which cells are undone --- */

/* Numbers of cells only grow. A further word on the same cell counts if it names a way back: a
 * state that was lost stays lost. */
static void note(struct memory *memory, int64_t cell, int64_t base)
{
    struct back *last = memory->back_count ? &memory->backs[memory->back_count - 1] : NULL;
    if (base == cell - 1)
        return;
    if (last && last->cell == cell) {
        last->base = base;
        return;
    }
    if (memory->back_count == REPEATS_BACKS_MAX)
        memory->back_count = memory->call_count = 0;
    memory->backs = grown(memory->backs, memory->back_count, sizeof *memory->backs);
    memory->backs[memory->back_count++] = (struct back){ cell, base };
}

/* Is that cell part of the state that the cell `now` began from? */
static bool is_part(const struct memory *memory, int64_t cell, int64_t now)
{
    for (size_t i = memory->back_count; i > 0; i--) {
        const struct back *back = &memory->backs[i - 1];
        if (back->cell > now)
            continue;
        if (cell >= back->cell)
            break;
        now = back->base;
    }
    return cell <= now;
}

void repeats_cell_over(struct repeats *repeats, const struct repeats_cell *cell, bool lost)
{
    struct memory *memory = *find(repeats, cell->session);
    if (!memory)
        return;
    note(memory, cell->cell, cell->base);
    if (lost)
        note(memory, cell->cell + 1, 0);
}

/* --- calls --- */

void repeats_add(struct repeats *repeats, const struct repeats_cell *cell,
                 const struct repeats_call *call)
{
    struct memory **at = find(repeats, cell->session), *memory = *at;
    if (!memory) {
        memory = *at = buf_alloc_zero(1, sizeof *memory);
        snprintf(memory->session, sizeof memory->session, "%s", cell->session);
    }
    if (memory->call_count == REPEATS_CALLS_MAX)
        memmove(memory->calls, memory->calls + 1, --memory->call_count * sizeof *memory->calls);
    else
        memory->calls = grown(memory->calls, memory->call_count, sizeof *memory->calls);
    memory->calls[memory->call_count++] = *call;
}

bool repeats_take(struct repeats *repeats, const struct repeats_cell *cell, const char *same,
                  struct repeats_call *out)
{
    struct memory *memory = *find(repeats, cell->session);
    size_t i = 0;
    if (!memory)
        return false;
    note(memory, cell->cell, cell->base);
    while (i < memory->call_count && (strcmp(memory->calls[i].same, same) != 0 ||
                                      is_part(memory, memory->calls[i].cell, cell->cell)))
        i++;
    if (i == memory->call_count)
        return false;
    *out = memory->calls[i];
    memmove(memory->calls + i, memory->calls + i + 1,
            (--memory->call_count - i) * sizeof *memory->calls);
    return true;
}
