/* The broker's own state: shared by its files, seen by no one else. */
#ifndef BOX_BROKER_H
#define BOX_BROKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/cgroup.h"
#include "box/posture.h"
#include "box/proto.h"

struct broker_box {
    bool used;
    pid_t init, occupant, porter; /* 0: none, or reaped */
    int init_fd;                  /* pidfd */
    bool started, empty, oom_seen;
    int64_t killed_at_ns;  /* 0: not killed */
    int ns[POSTURE_NS_COUNT];
    uint64_t pid_ns_ino;
    int disk; /* a directory of the writable part */
    struct cgroup cgroup;
    uint32_t walls;
    int64_t memory_bytes, disk_bytes, pids;
    int64_t blocks_at_start, inodes_at_start;
    int64_t cpu_us_seen; /* without cgroups: the most CPU time seen so far */
    int64_t kill_to_empty_us;
};

struct broker {
    int engine; /* the socket */
    int init_program;
    int own_pid_ns;
    bool two_ids;
    bool piped_core;
    struct cgroup_bases bases;
    struct posture_outside outside;
    struct broker_box box[BOX_MAX];
};

/* Each returns BOX_STEP_NONE or the failed step with errno set; a failed create
 * leaves nothing. */
enum box_step broker_box_create(struct broker *broker, uint32_t id, const struct box_call *call,
                                const int *fds);
enum box_step broker_box_start(struct broker *broker, uint32_t id, const struct box_call *call,
                               int exec_block, struct box_news *news, int out_fds[5]);
enum box_step broker_box_porter(struct broker *broker, uint32_t id, bool collect, int *out_sock);
/* Lift limits and kill everything in the box; it is empty once init is reaped. */
void broker_box_kill(struct broker_box *box);
/* Kill if need be, wait for every process, remove every trace. */
void broker_box_release(struct broker *broker, uint32_t id);
void broker_box_stats(const struct broker_box *box, struct box_stats *out);

/* Where no cgroup holds the memory or counts the CPU: look at the processes. */
bool broker_watch_wanted(const struct broker_box *box);
/* Bytes held by the box's processes and files. */
int64_t broker_watch_memory(const struct broker_box *box);
int64_t broker_watch_cpu_us(const struct broker_box *box);

#endif
