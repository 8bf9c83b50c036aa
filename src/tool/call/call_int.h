/* Private to src/tool/call. */
#ifndef TOOL_CALL_CALL_INT_H
#define TOOL_CALL_CALL_INT_H

#include "base/loop.h"
#include "tool/call/call.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"

#define CALLS_LISTED_MAX 1000 /* calls in the list of a result */
#define CALLS_PART_MAX ((size_t)16 << 10) /* bytes of arguments or outcome in the list */
#define CALLS_LIST_BYTES ((size_t)4 << 20) /* of all of them */

struct calls_tool {
    struct tool of;
    bool owned;       /* by the engine's owner: the tool host answers, not the client */
    int64_t made;     /* calls that passed the gate */
    unsigned running; /* that somebody answers now */
};

/* A call that passed the gate. */
struct calls_one {
    struct calls_one *next;
    struct calls_tool *tool;
    int64_t number, line; /* line 0: not known */
    json_t *arguments;
    int64_t began_ns, due_ns; /* due_ns LOOP_NEVER: it waits for others of its tool */
    uint64_t at_host; /* its id at the tool host; 0: it is not there */
    json_t *failed;   /* it could not begin */
};

struct calls {
    struct calls_hooks hooks;
    struct loop *loop;
    struct loop_timer timer; /* the earliest due_ns */
    struct engine_run *run;
    struct calls_tool *tools;
    size_t tool_count;
    json_t *told;
    struct calls_one *open, **end; /* in the order of their numbers */
    json_t *list;
    size_t list_bytes;
    uint64_t more, refused; /* calls that are not listed; that were refused */
};

/* call.c */
struct calls_tool *calls_find_tool(const struct calls *calls, struct str name);
/* choose.c: fills tools and told from the request. */
int calls_choose(struct calls *calls, const json_t *wanted, struct err *err);

/* told.c: a tool as the box is told of it. */
json_t *calls_told_of(const struct tool *tool);

/* list.c: what the result and the events say of calls. */
void calls_say_call(struct calls *calls, const struct calls_one *one);
struct calls_entry {
    int64_t number, line;
    struct str tool;
    const json_t *arguments;
    const json_t *outcome;
    enum tool_verdict verdict;
    int64_t began_ns;
};
/* A call has its outcome: lists it, and tells the door. */
void calls_note(struct calls *calls, const struct calls_entry *entry);

#endif
