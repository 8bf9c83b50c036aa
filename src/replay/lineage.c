/* The surviving history of a session. Pure but for the caller's reading of it. */
#include "replay/lineage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static bool is_act(const json_t *row, const char *kind)
{
    return strcmp(text_of(row, "act"), kind) == 0;
}

/* The number of a cell; of an act: of the last cell ahead of it. -1: unknown. */
static json_int_t cell_of(const json_t *row)
{
    const json_t *from = *text_of(row, "act") ? json_object_get(row, "detail") : row;
    const json_t *cell = json_object_get(from, "cell");
    return json_is_integer(cell) ? json_integer_value(cell) : -1;
}

static json_int_t state_of(const json_t *from)
{
    const json_t *cell = json_object_get(from, "state_cell");
    return json_is_integer(cell) ? json_integer_value(cell) : -1;
}

/* --- the order --- */

struct place {
    json_int_t cell;
    bool act;
    size_t index; /* acts are recorded in their order */
    json_t *row;
};

static int by_place(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    if (a->act != b->act)
        return a->act ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Cells by their numbers, each before the acts that followed. Runs that never began are left
 * out. */
static json_t *in_order(const json_t *history)
{
    size_t i, count = 0;
    json_t *row, *sorted = json_array();
    struct place *places = buf_alloc_zero(json_array_size(history) + 1, sizeof *places);
    json_array_foreach (history, i, row)
        if (json_is_object(row) && cell_of(row) >= 0)
            places[count++] = (struct place){ cell_of(row), *text_of(row, "act") != 0, i, row };
    qsort(places, count, sizeof *places, by_place);
    for (i = 0; i < count; i++)
        json_array_append(sorted, places[i].row);
    free(places);
    return sorted;
}

/* --- states --- */

/* A walk through a history. */
struct walk {
    json_t *steps; /* that lead to the state now */
    json_t *after; /* {"CELL": steps} */
    json_t *named; /* {"CHECKPOINT": steps} */
    json_int_t cell, state; /* the last cell, and the cell whose state it is */
};

static void walk_done(struct walk *walk)
{
    json_decref(walk->steps);
    json_decref(walk->after);
    json_decref(walk->named);
}

static const char *key_of(json_int_t cell, char out[24])
{
    snprintf(out, 24, "%lld", (long long)cell);
    return out;
}

/* The state after cell `state` is that of the steps now. Arrays are shared until they change. */
static void note(struct walk *walk, json_int_t state)
{
    char key[24];
    walk->state = state;
    json_object_set(walk->after, key_of(state, key), walk->steps);
}

static void push(struct walk *walk, json_t *row)
{
    json_t *longer = json_copy(walk->steps);
    json_array_append(longer, row);
    json_decref(walk->steps);
    walk->steps = longer;
}

/* False: nobody knows that state. */
static bool go_back(struct walk *walk, json_t *kept, json_int_t state)
{
    char key[24];
    json_t *steps = kept ? kept : json_object_get(walk->after, key_of(state, key));
    if (!steps)
        return false;
    json_incref(steps);
    json_decref(walk->steps);
    walk->steps = steps;
    note(walk, state);
    return true;
}

static int refuse_gap(const json_t *row, json_int_t cell, struct err *err)
{
    err_set(err, ERR_ABSENT, "cell %lld of session '%.40s' is not recorded any more",
            (long long)cell, text_of(row, "session"));
    err_hint(err, "a cell is replayed with the cells before it: this one cannot be");
    return -1;
}

/* A cell whose record is gone; it matters if nothing undid it. */
static void take_gaps(struct walk *walk, const json_t *row, json_int_t before)
{
    while (walk->cell + 1 < before && json_array_size(walk->steps) < LINEAGE_STEPS_MAX) {
        own_json gap = json_pack("{s:s, s:{s:I}, s:s}", "act", "gap", "detail", "cell",
                                 (json_int_t)++walk->cell, "session", text_of(row, "session"));
        push(walk, gap);
        note(walk, walk->cell);
    }
}

static int take_cell(struct walk *walk, json_t *row, struct err *err)
{
    const json_t *result = json_object_get(row, "result");
    take_gaps(walk, row, cell_of(row));
    walk->cell = cell_of(row);
    if (strcmp(text_of(result, "state"), "rolled_back") == 0)
        return go_back(walk, NULL, state_of(result)) ? 0 : refuse_gap(row, state_of(result), err);
    push(walk, row);
    note(walk, walk->cell);
    return 0;
}

static int take_act(struct walk *walk, json_t *row, struct err *err)
{
    const json_t *detail = json_object_get(row, "detail");
    take_gaps(walk, row, cell_of(row) + 1);
    if (is_act(row, "put") || is_act(row, "remove")) {
        push(walk, row);
        note(walk, walk->state);
    } else if (is_act(row, "checkpoint")) {
        json_object_set(walk->named, text_of(detail, "name"), walk->steps);
    } else if (is_act(row, "undo")) {
        json_t *kept = json_object_get(walk->named, text_of(detail, "to"));
        if (!go_back(walk, *text_of(detail, "to") ? kept : NULL, state_of(detail)))
            return refuse_gap(row, state_of(detail), err);
    }
    return 0;
}

/* --- histories --- */

/* Of a parent: all up to the fork. */
struct end {
    const char *run; /* the cell that is wanted; NULL: all */
    double at;       /* acts up to then; 0: all */
    json_int_t cell; /* of a parent: the state that was forked */
    int forks;
};

static json_t *walk_history(const struct lineage_source *source, const char *session,
                            const struct end *end, struct err *err);

static bool begins(const json_t *row)
{
    return is_act(row, "new") || is_act(row, "fork");
}

/* The steps before the first cell. */
static int take_start(const struct lineage_source *source, struct walk *walk, json_t *row,
                      const struct end *end, struct err *err)
{
    const json_t *detail = json_object_get(row, "detail");
    walk->cell = walk->state = cell_of(row);
    if (is_act(row, "new")) {
        push(walk, row);
    } else {
        const struct end fork = { .at = json_number_value(json_object_get(row, "at")),
                                  .cell = cell_of(row), .forks = end->forks + 1 };
        if (fork.forks > LINEAGE_FORKS_MAX)
            return err_set(err, ERR_LIMIT, "a fork of a fork, more than %d times",
                           LINEAGE_FORKS_MAX);
        json_t *steps = walk_history(source, text_of(detail, "from"), &fork, err);
        if (!steps)
            return -1;
        json_decref(walk->steps);
        walk->steps = steps;
    }
    note(walk, walk->state);
    return 0;
}

static int take_row(const struct lineage_source *source, struct walk *walk, json_t *row,
                    const struct end *end, struct err *err)
{
    bool act = *text_of(row, "act") != 0;
    bool late = act && end->at > 0 && json_number_value(json_object_get(row, "at")) > end->at;
    if (late)
        return 0;
    if (json_array_size(walk->steps) >= LINEAGE_STEPS_MAX)
        return err_set(err, ERR_LIMIT, "the cell has more than %d steps before it",
                       LINEAGE_STEPS_MAX);
    if (begins(row))
        return json_array_size(walk->steps) ? 0 : take_start(source, walk, row, end, err);
    if (json_array_size(walk->steps) == 0) {
        err_set(err, ERR_ABSENT, "the start of session '%.40s' is not recorded",
                text_of(row, "session"));
        err_hint(err, "its cells cannot be replayed");
        return -1;
    }
    return act ? take_act(walk, row, err) : take_cell(walk, row, err);
}

/* `new` and `fork` first, whatever their cell is. */
static json_t *with_start_first(const json_t *history)
{
    size_t i;
    json_t *row, *list = json_array();
    own_json sorted = in_order(history);
    json_array_foreach (sorted, i, row)
        if (begins(row) && json_array_size(list) == 0)
            json_array_append(list, row);
    json_array_foreach (sorted, i, row)
        if (row != json_array_get(list, 0))
            json_array_append(list, row);
    return list;
}

static json_t *walk_history(const struct lineage_source *source, const char *session,
                            const struct end *end, struct err *err)
{
    own_json history = source->history(source->user, session, end->run, err);
    attr_cleanup(walk_done) struct walk walk = { .steps = json_array(), .after = json_object(),
                                                 .named = json_object() };
    size_t i;
    json_t *row;
    char key[24];
    if (!history)
        return NULL;
    own_json rows = with_start_first(history);
    json_array_foreach (rows, i, row) {
        if (end->run && strcmp(text_of(row, "run"), end->run) == 0 && !begins(row)) {
            take_gaps(&walk, row, cell_of(row));
            push(&walk, row);
            return take_ptr(walk.steps);
        }
        if (take_row(source, &walk, row, end, err) < 0)
            return NULL;
    }
    json_t *found = end->run ? NULL : json_object_get(walk.after, key_of(end->cell, key));
    if (!found)
        err_set(err, ERR_ABSENT, "the history of session '%.40s' is not recorded", session);
    return json_incref(found);
}

json_t *lineage_of(const struct lineage_source *source, const json_t *record, struct err *err)
{
    const struct end end = { .run = text_of(record, "run") };
    size_t i;
    json_t *row;
    if (!*end.run || cell_of(record) < 0) {
        err_set(err, ERR_CONFLICT, "run '%.40s' never began: there is nothing to replay", end.run);
        return NULL;
    }
    own_json steps = walk_history(source, text_of(record, "session"), &end, err);
    json_array_foreach (steps, i, row)
        if (is_act(row, "gap")) {
            refuse_gap(row, cell_of(row), err);
            return NULL;
        }
    if (steps && !is_act(json_array_get(steps, 0), "new")) {
        err_set(err, ERR_ABSENT, "the start of session '%.40s' is not recorded",
                text_of(record, "session"));
        err_hint(err, "its cells cannot be replayed");
        return NULL;
    }
    return take_ptr(steps);
}
