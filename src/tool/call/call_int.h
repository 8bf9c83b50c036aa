/* Private to src/tool/call. */
#ifndef TOOL_CALL_CALL_INT_H
#define TOOL_CALL_CALL_INT_H

#include "base/loop.h"
#include "tool/call/call.h"
#include "tool/call/ready.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"

#define CALLS_LISTED_MAX 1000 /* calls in the list of a result */
#define CALLS_PART_MAX ((size_t)16 << 10) /* bytes of arguments or outcome in the list */
#define CALLS_CODE_MAX 400 /* bytes of the line of code that a person sees */
#define CALLS_LIST_BYTES ((size_t)4 << 20) /* of all of them */
#define CALLS_WHOLE_BYTES ((size_t)16 << 20) /* of tools and calls for the record */

struct calls_tool {
    const struct tool *of;
    const char *told_text; /* as the box is told of it */
    bool owned;       /* by the engine's owner: the tool host answers, not the client */
    int64_t made;     /* calls that passed the gate */
    unsigned running; /* that somebody answers now */
};

enum calls_asked {
    CALLS_NOT_ASKED,
    CALLS_ASKS, /* it waits for a decision */
    CALLS_APPROVED,
    CALLS_REFUSED,
    CALLS_TAKEN_BACK, /* it ends without a decision */
};

/* A call that passed the gate. It asks, waits for others of its tool, or runs. */
struct calls_one {
    struct calls_one *next;
    struct calls_tool *tool;
    int64_t number, line; /* line 0: not known */
    json_t *arguments;
    int64_t began_ns, due_ns; /* due_ns LOOP_NEVER: no end yet */
    bool runs;        /* somebody answers it now */
    enum calls_asked asked;
    double asked_ms;  /* that it waited for the decision */
    struct str reason; /* of a refusal, or STR_NONE; borrowed */
    uint64_t at_host; /* its id at the tool host; 0: it is not there */
    char *text;       /* the outcome as compact JSON, once it is known; or NULL */
    json_t *failed;   /* its end at due_ns; NULL: a time-out */
    bool acted; /* there was a value: the tool has done what it does */
    char id[REPEATS_ID_ROOM], key[REPEATS_ID_ROOM]; /* key: for tools that take one */
    struct repeats_call *earlier; /* the call that this one repeats, or NULL */
};

struct calls {
    struct calls_hooks hooks;
    struct loop *loop;
    struct loop_timer timer; /* the earliest due_ns */
    struct engine_run *run;
    bool over; /* no other call begins */
    struct repeats_cell cell; /* of the calls; cell 0: a run */
    struct ready *ready, *ready_owned; /* what the tools are of */
    struct calls_tool *tools;
    size_t tool_count;
    json_t *told;
    struct calls_one *open, **end; /* in the order of their numbers */
    size_t asking; /* calls that wait for a decision: the box is frozen */
    json_t *list;
    size_t list_bytes;
    uint64_t more, refused; /* calls that are not listed; that were refused */
    struct buf whole; /* for the record, its end is missing; empty: nobody wants it */
    bool whole_is_full;
};

/* call.c */
struct calls_tool *calls_find_tool(const struct calls *calls, struct str name);
struct calls_one *calls_find(const struct calls *calls, int64_t number);
/* The call begins, if its tool may run once more now. */
void calls_go(struct calls *calls, struct calls_one *one);
/* `told`: the code waits for the outcome. Takes the outcome, frees the call. */
void calls_finish(struct calls *calls, struct calls_one *one, json_t *outcome, bool told);
void calls_set_timer(struct calls *calls);

/* approve.c: calls that wait for a person. */
/* The policy asks: freezes the box, and tells the client. The call may have ended then. */
void calls_ask(struct calls *calls, struct calls_one *one);
/* It asks no more: the box goes on if it was the last one. */
void calls_ask_no_more(struct calls *calls, struct calls_one *one, enum calls_asked now);
/* The code goes on by an interrupt: nobody is asked any more, and the calls end soon. */
void calls_take_back(struct calls *calls);

/* again.c: calls of cells that were undone, and run again. */
/* A call that passed the gate: gives it a key, and finds the earlier one. */
void calls_recall(struct calls *calls, struct calls_one *one);
/* The id of that one, or NULL. */
const char *calls_repeats(const struct calls_one *one);
/* It is over: the next cells may repeat it. */
void calls_remember(const struct calls *calls, const struct calls_one *one, const json_t *outcome);

/* choose.c: fills tools and told from the request. */
int calls_choose(struct calls *calls, const json_t *wanted, struct err *err);

/* told.c: a tool as the box is told of it. */
json_t *calls_told_of(const struct tool *tool);

/* list.c: what the result and the events say of calls. */
void calls_say_call(struct calls *calls, const struct calls_one *one);
/* The event of a call that waits for a decision. */
json_t *calls_question(const struct calls *calls, const struct calls_one *one);
void calls_tell(struct calls *calls, enum engine_event_kind kind, int64_t number, json_t *members);
struct calls_entry {
    int64_t number, line;
    struct str tool;
    const json_t *arguments;
    const json_t *outcome;
    const char *outcome_text; /* the same as compact JSON */
    enum tool_verdict verdict;
    int64_t began_ns;
    bool unheard; /* the code did not wait for the outcome */
    const struct calls_one *asked; /* a person was asked; or NULL */
    const char *repeats; /* the id of an earlier call, or NULL */
};
/* A call has its outcome: lists it, and tells the door. */
void calls_note(struct calls *calls, const struct calls_entry *entry);

/* whole.c: tools and calls as the record has them. */
void calls_whole_begin(struct calls *calls);
/* `arguments` and `outcome` are the texts of those of the entry. */
void calls_whole_add(struct calls *calls, const struct calls_entry *entry, double ms,
                     const char *arguments, const char *outcome);
void calls_whole_end(struct calls *calls, struct buf *out);

#endif
