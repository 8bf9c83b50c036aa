/* A box's usage, read from open counter files of its control groups. The broker opens the files and
 * sends copies to the engine. */
#ifndef BOX_CGROUP_COUNTERS_H
#define BOX_CGROUP_COUNTERS_H

#include <stdint.h>

#include "box/proto/proto.h"

/* Each returns -1 when there is nothing to read. The format of a file shows its hierarchy. */
int64_t counters_cpu_us(int fd);
int64_t counters_oom_kills(int fd);
int64_t counters_pids_hits(int fd);
int64_t counters_memory_peak(int fd);

/* The size of a directory of the writable part, which is a tmpfs: each entry adds 20 bytes and
 * removes them when it goes. So a directory with the size that it had when empty is empty, whatever
 * was made and removed since. */
int64_t counters_work_size(int dir, const char *name);

/* Update *stats from its values at the start. 0, or -1 when CPU time or disk cannot be read this
 * way: then ask the broker. */
int counters_read(const int fd[BOX_COUNTERS], struct box_stats *stats);

#endif
