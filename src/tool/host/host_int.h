/* Between the processes of the tool host. Only the files of tool/host include this. */
#ifndef TOOL_HOST_HOST_INT_H
#define TOOL_HOST_HOST_INT_H

#include <jansson.h>
#include <stdint.h>

#include "base/attr.h"
#include "tool/host/host.h"
#include "tool/host/program.h"

#define HOST_FRAME_MAX ((size_t)24 << 20) /* bytes of one frame, either way */
#define HOST_DEPTH_MAX 56                 /* containers in arguments and outcomes */

/* The parent's message to the guard: start the host, with one end of a stream (one descriptor). */
struct host_order {
    int32_t what;
};
#define HOST_START 1

/* The host's message to the guard: start a program. Descriptors: control, words, in, out, notes.
 * The words are a memory file of texts that end in NUL: argc of argv, envc of env, and cwd. */
struct host_program {
    uint32_t argc, envc, bytes;
    struct program_limits limits;
};
#define HOST_PROGRAM_FDS 5

/* The guard's process, forked in toolhost_open: never returns. */
attr_noreturn void host_guard(int sock, const struct toolhost_options *options);
/* The process of one program, forked by the guard: never returns. */
attr_noreturn void host_mind(const struct host_program *program, const int fds[HOST_PROGRAM_FDS]);
/* The tool host's process, forked by the guard: frames on `sock`, programs by `guard`. */
attr_noreturn void host_serve(int sock, int guard, const struct toolhost_options *options);
/* In the tool host's process: the socket that program_start uses. */
void host_use_guard(int guard);

/* Containers inside containers, at most `limit` + 1. */
size_t host_depth(const json_t *value, size_t limit);

#endif
