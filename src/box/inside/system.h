/* The files by which a box describes itself as a system: its memory, processors and processes are
 * those of its limits, never the host's. */
#ifndef BOX_INSIDE_SYSTEM_H
#define BOX_INSIDE_SYSTEM_H

#include <stdint.h>

struct system_limits {
    int64_t memory_bytes, pids, cpu_thousandths;
};

/* Write /sys and the files for /proc into the tree in the current directory. 0, or -1 with
 * errno. */
int system_write(const struct system_limits *limits);
/* Bind the files for /proc over those of the whole procfs at "proc". The root is read-only by now,
 * and so are the binds. 0, or -1 with errno. */
int system_bind(void);
/* A processor for each whole or started one of the limit. */
int system_cpus(const struct system_limits *limits);

#endif
