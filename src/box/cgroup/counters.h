/* What a box has used, read from open counter files of its control groups. Pure
 * reading: the broker opens the files, and hands copies to the engine. */
#ifndef BOX_CGROUP_COUNTERS_H
#define BOX_CGROUP_COUNTERS_H

#include <stdint.h>

#include "box/proto/proto.h"

/* Each -1 where there is nothing to read. The files tell by their form which
 * hierarchy they are of. */
int64_t counters_cpu_us(int fd);
int64_t counters_oom_kills(int fd);
int64_t counters_pids_hits(int fd);
int64_t counters_memory_peak(int fd);

/* The size of a directory of the writable part, which is a tmpfs: there each entry adds 20
 * bytes and takes them along when it goes. So one that has the size that it had when it was
 * empty is empty now, whatever was made and removed meanwhile, here or elsewhere. */
int64_t counters_work_size(int dir, const char *name);

/* Bring *stats, as it was at the start, up to date. 0, or -1 where the CPU time or
 * the disk cannot be read this way, and the broker must be asked. */
int counters_read(const int fd[BOX_COUNTERS], struct box_stats *stats);

#endif
