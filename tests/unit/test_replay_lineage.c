/* The surviving history of a session: undo, rollback, forks, files, gaps. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "replay/lineage.h"

/* Histories of sessions "s_a" and "s_b", as JSON in single quotes. */
struct told {
    const char *a, *b;
};

static json_t *json_of(const char *text)
{
    own_str copy = buf_strdup(str_of(text));
    struct err err = ERR_INIT;
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = json_read(str_of(copy), 1 << 20, &err);
    CHECK(value != NULL);
    return value;
}

static json_t *history(void *user, const char *session, const char *until, struct err *err)
{
    const struct told *told = user;
    const char *text = strcmp(session, "s_a") == 0 ? told->a : told->b;
    (void)until;
    if (text)
        return json_of(text);
    err_set(err, ERR_ABSENT, "there is no session");
    return NULL;
}

/* "new put c1 c3" for the way to a cell, or the err's text. */
static char *way(const struct told *told, const char *record)
{
    const struct lineage_source source = { history, (void *)(uintptr_t)told };
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT(10000);
    own_json target = json_of(record);
    own_json steps = lineage_of(&source, target, &err);
    size_t i;
    json_t *step;
    if (!steps)
        buf_add_text(&out, err.text);
    json_array_foreach (steps, i, step) {
        const char *act = json_string_value(json_object_get(step, "act"));
        const char *run = json_string_value(json_object_get(step, "run"));
        buf_printf(&out, "%s%s", i ? " " : "", act ? act : run + 2);
    }
    return buf_take(&out);
}

#define NEW "{'act':'new','session':'s_a','at':1,'detail':{'cell':0,'state_cell':0}}"
#define CELL(n) "{'run':'r_" #n "','session':'s_a','cell':" #n ",'result':{'state':'kept'}}"
#define ACT(kind, cell, state, more) \
    "{'act':'" kind "','session':'s_a','at':5,"                                                   \
    "'detail':{'cell':" #cell ",'state_cell':" #state more "}}"

TEST(replay_lineage_keeps_what_no_undo_dropped)
{
    static const struct {
        const char *history, *target, *want;
    } rows[] = {
        { "[" NEW "," CELL(1) "," CELL(2) "]", CELL(2), "new 1 2" },
        { "[" NEW "," CELL(1) "," CELL(2) "," CELL(3) "]", CELL(2), "new 1 2" },
        { "[" NEW "," CELL(1) "," CELL(2) "," ACT("undo", 2, 1, ) "," CELL(3) "]", CELL(3),
          "new 1 3" },
        /* A cell's start is recorded when it enters the queue: the order is that of the cells. */
        { "[" CELL(3) "," ACT("undo", 2, 1, ) "," CELL(2) "," CELL(1) "," NEW "]", CELL(3),
          "new 1 3" },
        { "[" NEW "," CELL(1) "," CELL(2) "," ACT("undo", 2, 1, ) "," CELL(3) "]", CELL(2),
          "new 1 2" },
        /* A put belongs to the state after the cell ahead of it. */
        { "[" NEW "," ACT("put", 0, 0, ) "," CELL(1) "," ACT("undo", 1, 0, ) "," CELL(2) "]",
          CELL(2), "new put 2" },
        { "[" NEW "," CELL(1) "," ACT("put", 1, 1, ) "," CELL(2) "," ACT("undo", 2, 1, ) ","
          CELL(3) "]",
          CELL(3), "new 1 put 3" },
        { "[" NEW "," CELL(1) "," ACT("put", 1, 1, ) "," CELL(2) "," ACT("remove", 2, 2, ) ","
          CELL(3) "," ACT("undo", 3, 2, ) "," ACT("undo", 3, 1, ) "," CELL(4) "]",
          CELL(4), "new 1 put 4" },
        { "[" NEW "," CELL(1) "," ACT("checkpoint", 1, 1, ",'name':'c'") ","
          ACT("put", 1, 1, ) "," CELL(2) "," ACT("undo", 2, 1, ",'to':'c'") "," CELL(3) "]",
          CELL(3), "new 1 3" },
        { "[" NEW "," CELL(1) ",{'run':'r_2','session':'s_a','cell':2,'result':{'state':"
          "'rolled_back','state_cell':1}}," CELL(3) "]",
          CELL(3), "new 1 3" },
        { "[" NEW "," CELL(1) ",{'run':'r_2','session':'s_a','cell':2,'result':{'state':"
          "'rolled_back','state_cell':1}}," CELL(3) "]",
          CELL(2), "new 1 2" },
        { "[" NEW "," CELL(1) ",{'run':'r_x','session':'s_a','cell':null,'result':null},"
          CELL(2) "]",
          CELL(2), "new 1 2" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_str got = way(&(struct told){ .a = rows[i].history }, rows[i].target);
        CHECK_TEXT(got, rows[i].want);
    }
}

TEST(replay_lineage_of_a_fork_begins_with_its_parent)
{
#define FORK(at, cell) \
    "{'act':'fork','session':'s_b','at':" #at ",'detail':{'from':'s_a','cell':" #cell "}}"
#define OWN(n) "{'run':'r_b" #n "','session':'s_b','cell':" #n ",'result':{'state':'kept'}}"
    static const char parent[] = "[" NEW
                                 "," CELL(1) "," ACT("put", 1, 1, ) "," CELL(2) "," CELL(3) "]";
    own_str two = way(&(struct told){ parent, "[" FORK(9, 2) "," OWN(3) "]" }, OWN(3));
    CHECK_TEXT(two, "new 1 put 2 b3");
    own_str one = way(&(struct told){ parent, "[" FORK(9, 1) "," OWN(2) "]" }, OWN(2));
    CHECK_TEXT(one, "new 1 put b2");
    own_str early = way(&(struct told){ parent, "[" FORK(4, 1) "," OWN(2) "]" }, OWN(2));
    CHECK_TEXT(early, "new 1 b2"); /* the put came after the fork */
    own_str undone = way(&(struct told){ parent, "[" FORK(9, 1) "," OWN(2) ",{'act':'undo',"
                                                 "'session':'s_b','at':10,'detail':{'cell':2,"
                                                 "'state_cell':1}}," OWN(3) "]" },
                         OWN(3));
    CHECK_TEXT(undone, "new 1 put b3");
    own_str gone = way(&(struct told){ NULL, "[" FORK(9, 1) "," OWN(2) "]" }, OWN(2));
    CHECK_TEXT(gone, "there is no session");
    own_str circle = way(&(struct told){ "[{'act':'fork','session':'s_a','at':1,'detail':{'from':"
                                         "'s_a','cell':0}}," CELL(1) "]",
                                         NULL },
                         CELL(1));
    CHECK(strstr(circle, "a fork of a fork") != NULL);
}

TEST(replay_lineage_refuses_what_is_not_recorded)
{
    static const struct {
        const char *history, *target, *want;
    } rows[] = {
        { "[" CELL(1) "]", CELL(1), "the start of session 's_a' is not recorded" },
        { "[" CELL(1) "," CELL(2) "]", CELL(2), "the start of session 's_a' is not recorded" },
        { "[" NEW "," CELL(1) "," CELL(3) "]", CELL(3),
          "cell 2 of session 's_a' is not recorded any more" },
        { "[" NEW "," CELL(2) "]", CELL(2), "cell 1 of session 's_a' is not recorded any more" },
        { "[" NEW "," CELL(1) "," ACT("put", 2, 2, ) "," CELL(3) "]", CELL(3),
          "cell 2 of session 's_a' is not recorded any more" },
        { "[" NEW "," CELL(1) "]", CELL(2), "the history of session 's_a' is not recorded" },
        { "[" NEW "," CELL(1) "," ACT("undo", 1, 7, ) "," CELL(2) "]", CELL(2),
          "cell 7 of session 's_a' is not recorded any more" },
        { "[]", "{'run':'r_1','session':'s_a','cell':null}",
          "run 'r_1' never began: there is nothing to replay" },
        { "[" NEW "," CELL(1) "," CELL(3) "," ACT("undo", 3, 1, ) "," CELL(4) "]", CELL(4),
          "new 1 4" }, /* the missing cell was undone */
        { "[" NEW ",7,null,[],{'cell':1e9},{'cell':99999999999}," CELL(1) "]", CELL(1), "new 1" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_str got = way(&(struct told){ .a = rows[i].history }, rows[i].target);
        CHECK_TEXT(got, rows[i].want);
    }
}
