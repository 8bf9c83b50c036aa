/* The program `tool` of bash code: makes one call of a tool, and prints its value. Runs in the box,
 * as the user's code and with its rights: it protects nothing and knows no secret. Any number of
 * them may call at once.
 *
 * 1. The driver (drivers/tools.sh) writes CALLER_TOOLS: a line with the nonce of the cell and the
 *    numbers of the channel's descriptors, and then the tools. The programs share CALLER_STATE,
 *    which begins anew with each nonce.
 * 2. One of them reads the channel at a time and puts each answer into a file of its own, from
 *    which the caller of that number takes it.
 * 3. kill -9 of any of them, at any moment, costs no other call its answer: the kernel releases the
 *    locks of the dead, and every change of the shared state can be done again. */
#ifndef BOX_CALLER_CALLER_H
#define BOX_CALLER_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

#define CALLER_TOOLS "/dev/shm/.cupel-tools"
#define CALLER_STATE "/dev/shm/.cupel-calls"
#define CALLER_ANSWER "/dev/shm/.cupel-call." /* and the number; with ".part" until it is whole */
#define CALLER_PATH_ROOM 64
#define CALLER_NONCE_ROOM 40
#define CALLER_NAME_MAX 64 /* bytes of a tool's name */
#define CALLER_ARGUMENTS_MAX (1u << 20) /* bytes of a call's arguments */

/* Exit codes. */
enum caller_exit {
    CALLER_OK = 0,
    CALLER_ERROR = 1,
    CALLER_USAGE = 2,
    CALLER_DENIED = 77,
    CALLER_TIMEOUT = 124,
};

/* CALLER_TOOLS, read once. */
struct caller_tools {
    char nonce[CALLER_NONCE_ROOM];
    int words, requests; /* the channel: to the engine and from it */
    const char *text; /* entries of caller_list.c, ended by NUL */
};

struct caller_state;
struct caller {
    struct caller_tools tools;
    struct caller_state *state;
    int state_fd;
    int32_t number; /* of the own call; 0: none yet */
};

struct caller_call {
    const char *tool, *arguments; /* `arguments` is meant to be JSON */
    size_t len; /* of `arguments` */
    long line; /* of the user's code; 0: not known */
};

/* Say why on stderr, after "tool: " and perhaps a tool's name; the exit code, so that it can be
 * returned. */
int caller_fail(enum caller_exit code, const char *tool, const char *reason);

/* caller_tools.c */
/* -1: there are no tools, which was said. */
int caller_read_tools(struct caller_tools *out);
bool caller_has_tool(const struct caller_tools *tools, const char *name);
/* The commands --list, --search and --help: exit codes. */
int caller_list(const struct caller_tools *tools);
int caller_search(const struct caller_tools *tools, char *const *words);
int caller_help(const struct caller_tools *tools, const char *name);

/* caller_state.c */
/* Opens the shared state; -1 with the reason said. */
int caller_open(struct caller *caller);
/* One at a time may write to the channel, one read from it. `wait`: until it is free. */
enum caller_lock { CALLER_WRITES, CALLER_READS, CALLER_CALLS };
bool caller_lock(const struct caller *caller, int64_t which, bool wait);
void caller_unlock(const struct caller *caller, int64_t which);
/* Does any other process hold it? */
bool caller_is_locked(const struct caller *caller, int64_t which);
/* Is this still the cell that the program was started in, and its end not yet near? */
bool caller_may_call(const struct caller *caller);
/* The state of the own cell: begins it if its first program comes. With CALLER_WRITES held. */
void caller_renew(struct caller *caller);
/* Sleeps until an answer is whole or a reader ends, at most 50 ms; `turn` from before the look. */
uint32_t caller_turn(const struct caller *caller);
void caller_sleep(const struct caller *caller, uint32_t turn);
void caller_wake(const struct caller *caller);
/* A place among the calls that wait; false: all are taken. With CALLER_WRITES held. */
bool caller_enter(struct caller *caller);
/* The number of a caller that died, taken out; 0: none. With CALLER_WRITES held. */
int32_t caller_dead(const struct caller *caller);
/* The cell ends: no further call. With CALLER_WRITES held. */
void caller_begin_end(struct caller *caller);
bool caller_is_over(const struct caller *caller);
/* Marks the end where no call was made. */
void caller_set_over(struct caller *caller);
void caller_answer_path(int32_t number, bool whole, char out[CALLER_PATH_ROOM]);

/* caller_read.c */
/* Reads from the channel once, and hands out all answers that are whole. With CALLER_READS held.
 * -1: the engine is gone. */
int caller_pump(struct caller *caller);

/* caller_send.c: lines to the engine. -1: the reason was said. */
int caller_send_call(struct caller *caller, const struct caller_call *call);
int caller_send_cancel(const struct caller *caller, int32_t number);
/* Length of the first UTF-8 character of the bytes; 0: they begin with none. */
size_t caller_utf8(const char *at, size_t len);

/* caller_print.c */
/* The answer in that file: its value to stdout, or its error to stderr. `to_file`: the value to a
 * file, and the path of that to stdout. The exit code. */
int caller_print(int fd, const char *tool, bool to_file);

#endif
