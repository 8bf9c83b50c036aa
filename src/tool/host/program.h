/* Programs that sources start: commands and MCP servers. The threads of the tool host never fork;
 * a process of one thread (host_guard.c) forks a minder for each program, which runs it in a group
 * of its own and kills all of its descendants when the program ends, when the handle is closed, or
 * when the host dies. */
#ifndef TOOL_HOST_PROGRAM_H
#define TOOL_HOST_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

#define PROGRAM_WORDS_MAX 256        /* of argv, and of env */
#define PROGRAM_BYTES_MAX (128 << 10) /* of argv, env and cwd together */

struct program_limits {
    uint64_t memory_bytes; /* RLIMIT_DATA; 0: none */
    uint64_t cpu_s;        /* 0: none */
    uint64_t open_files;   /* 0: 256 */
    uint64_t file_bytes;   /* of one file that it writes; 0: 1 GiB */
};

struct program_plan {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the PATH of env */
    const char *const *env;  /* ends with NULL; all of it: nothing is inherited */
    const char *cwd;         /* NULL: the home folder, else "/" */
    int in, out, notes;      /* become descriptors 0, 1, 2; stay the caller's too */
    struct program_limits limits;
};

struct program_end {
    int32_t error;  /* errno: it was not started; 0: it ran */
    int32_t status; /* as waitpid gives it */
};

/* Start it. The handle, a descriptor, is readable when the program and all of its descendants have
 * ended; closing it ends them. -1 with err. Any thread. */
int program_start(const struct program_plan *plan, struct err *err) attr_must_use;
/* How it ended: 0, or -1 while it runs or where the minder is lost. Does not wait. */
int program_ended(int handle, struct program_end *out) attr_must_use;
/* Closes the handle and waits until everything is dead, at most wait_ms. */
void program_stop(int handle, int64_t wait_ms);

/* The environment of tools: PATH, HOME, LANG of the host, then `extra` ("K=V", which win). A heap
 * list that ends with NULL; free with program_env_free. */
char **program_env(const char *const *extra);
void program_env_free(char **env);

#endif
