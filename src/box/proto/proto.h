/* What crosses the socket between the engine and the broker: fixed-size structs
 * with descriptors attached, nothing free-form. Both sides are built from this
 * one header, so there is no version; any other size ends the broker. */
#ifndef BOX_PROTO_PROTO_H
#define BOX_PROTO_PROTO_H

#include <stdint.h>

#include "box/wall/walls.h"

#define BOX_MAX 128         /* boxes at once in one broker */
#define BOX_ZYGOTES_MAX 4   /* and zygotes */
#define BOX_PLANTS_MAX 10   /* our own read-only files in a box */
#define BOX_PLANT_NAME 48   /* room of a plant's name */
#define BOX_PLANT_DIR "/usr/lib/cupel"
#define BOX_PATH_MAX 1024
#define BOX_WORK "w" /* the folder of the writable part that is /workspace */
#define BOX_EXEC_ROOM (640u << 10) /* bytes of one exec block */
#define BOX_EXEC_STRINGS 2048      /* args and env together */
#define BOX_STATES 24       /* states of a session that are kept */

/* The channel between an occupant and the engine: two pipes, because a socket would carry
 * descriptors, whose last close may take as long as their sender likes. Wherever both ends of
 * one side come together, they come in this order. */
enum box_channel { BOX_WORDS, BOX_REQUESTS, BOX_CHANNEL };
#define BOX_FD_WORDS 3    /* what the occupant says to the engine */
#define BOX_FD_REQUESTS 4 /* what it is told */
#define BOX_FD_LAST BOX_FD_REQUESTS

/* Where setting up a box failed; the host makes the sentence. */
#define BOX_STEPS(X)                                                    \
    X(NONE, "nothing failed")                                           \
    X(CGROUP, "make the control group")                                 \
    X(CLONE, "create the namespaces")                                   \
    X(ID_MAP, "write the id maps")                                      \
    X(JOIN, "join the control group")                                   \
    X(IDS, "switch ids")                                                \
    X(PRIVATE, "make mounts private")                                   \
    X(ROOT, "mount the root")                                           \
    X(TREE, "lay out the root")                                         \
    X(PLANT, "place cupel's own files")                                 \
    X(IMAGE, "mount the image")                                         \
    X(ETC, "copy files of /etc")                                        \
    X(DEV, "make /dev")                                                 \
    X(SYSCTL, "forbid new namespaces")                                  \
    X(PROC, "mount /proc")                                              \
    X(WRITABLE, "mount the writable part")                              \
    X(SEAL, "make the root read-only")                                  \
    X(PIVOT, "change the root")                                         \
    X(NET, "bring loopback up")                                         \
    X(NAME, "set the host name")                                        \
    X(DROP, "drop privileges")                                          \
    X(INIT, "start init")                                               \
    X(INIT_POSTURE, "check init's posture")                             \
    X(NS_FDS, "open the namespaces")                                    \
    X(ENTER, "enter the box")                                           \
    X(RLIMIT, "set resource limits")                                    \
    X(LANDLOCK, "apply landlock")                                       \
    X(SECCOMP, "install the system call filter")                        \
    X(POSTURE, "check the occupant's posture")                          \
    X(SPEC, "read the exec block")                                      \
    X(EXEC, "exec the interpreter")                                     \
    X(PIPES, "make the pipes")                                          \
    X(PORTER, "start the porter")                                       \
    X(ZYGOTE, "fork from the zygote")                                       \
    X(PEER, "hear from the child")

enum box_step {
#define X(id, text) BOX_STEP_##id,
    BOX_STEPS(X)
#undef X
};

/* Hierarchies, in the order of their descriptors. */
enum box_cg { BOX_CG_V2, BOX_CG_MEMORY, BOX_CG_PIDS, BOX_CG_CPU, BOX_CG_CPUACCT, BOX_CG_COUNT };

enum box_op {
    BOX_OP_SETUP = 1, /* once, first: what the bootstrap prepared */
    BOX_OP_CREATE,    /* build a box; plants attached */
    BOX_OP_PORTER,    /* start a porter in it: answers with its socket */
    BOX_OP_START,     /* exec the occupant; exec block and channel attached */
    BOX_OP_SIGNAL,    /* signal the occupant's process group */
    BOX_OP_STAT,
    BOX_OP_KILL,      /* lift limits, kill all; EMPTY follows */
    BOX_OP_RELEASE,   /* forget a box (killed first if need be) */
    BOX_OP_BEGIN,     /* an occupant that waited begins to work: watch it from now on */
    BOX_OP_FORK,      /* fork the occupant from a zygote; channel attached */
    BOX_OP_ZYGOTE,    /* start a zygote; plants and exec block attached */
    BOX_OP_RETIRE,    /* end a zygote; its occupants live on */
    /* Of a session, whose occupant was started with `session`: */
    BOX_OP_PARK,      /* copy the occupant, which waits, into a free place: PARKED */
    BOX_OP_WAKE,      /* a copy of what is in a place is the occupant; channel attached: AWAKE */
    BOX_OP_DROP,      /* forget what is in a place; no answer */
    BOX_OP_PREPARE,   /* SWEEP and WAKE of a place will follow: show that it can be: PREPARED */
    BOX_OP_FORK_INTO, /* what is in a place becomes the state of another box's occupant, which
                         waits: FORKED_INTO, told of the first box */
    BOX_OP_SWEEP,     /* kill all but init and what is in places: SWEPT, once they are gone */
};

/* Our own read-only files, under BOX_PLANT_DIR. */
struct box_plants {
    uint32_t count;
    char name[BOX_PLANTS_MAX][BOX_PLANT_NAME];
    char font_list[BOX_PLANT_NAME]; /* the one that /tmp/.matplotlib links to, or "" */
    uint32_t again; /* the same files will come again: worth a template */
    uint32_t late_code; /* main.sh leads to a descriptor of whoever opens it: drivers/cells.sh */
};

struct box_call {
    uint32_t op;
    uint32_t box; /* or zygote */
    union {
        struct {
            uint32_t uid_count;      /* ids mapped in W: 1, or a range */
            uint32_t cgroups;        /* bits of box_cg; one descriptor each */
            uint32_t v2_controllers; /* v2 base has memory, pids, cpu: bits of box_cg */
        } setup;                     /* fds: init program, box/proto/due.h, then cgroup bases */
        struct {
            int64_t memory_bytes, disk_bytes, disk_inodes, pids, cpu_thousandths;
            struct box_plants plants;
        } create; /* fds: one for each plant */
        struct {
            uint32_t collect; /* 0: before the start, inside the box's limits; 1: after its end */
            uint32_t resident; /* of a session: it stays, and keeps copies of files */
        } porter;
        struct {
            uint32_t required; /* walls without which the occupant must not start */
            int64_t cpu_s;     /* RLIMIT_CPU, the backstop of the CPU time limit */
            int64_t open_files;
            uint32_t waits;     /* for a request that is not there yet: BEGIN follows */
            uint32_t zygote;    /* FORK: which */
            uint32_t rehearsal; /* FORK: see box/zygote/zygote.h */
            uint32_t session;     /* it stays: its death is not the box's, and it can be parked */
        } start; /* fds: START: exec block; both: the occupant's ends of the channel */
        struct {
            struct box_plants plants;
        } zygote; /* fds: one for each plant, exec block */
        struct {
            int32_t signal;
        } signal;
        struct {
            uint32_t brief; /* without cgroups: the occupant's own CPU time is enough */
        } stat;
        struct {
            uint32_t state;
            uint32_t to; /* FORK_INTO: the other box */
            uint64_t ticket; /* whose state: given with PARK, asked for by all others */
        } keep; /* PARK, WAKE, DROP, PREPARE, FORK_INTO; fds: WAKE: the occupant's ends */
        struct {
            uint32_t plain; /* nothing is known against it: leave its limits as they are */
        } kill;
    };
};

struct box_stats {
    int64_t cpu_us;            /* since the start of the occupant; -1 unknown */
    int64_t memory_peak_bytes; /* -1 unknown */
    int64_t oom_kills;
    int64_t pids_hits;
    int64_t most_tasks; /* seen at once where no cgroup counts them, else 0 */
    int64_t blocks_free, inodes_free; /* of the writable part */
    int64_t blocks_at_start, inodes_at_start;
    int64_t work_size, work_at_start; /* of /workspace as a directory, which was empty then */
    /* Of the group's counters. */
    int64_t cpu_us_at_start, oom_kills_at_start, pids_hits_at_start;
    int64_t kill_to_empty_us; /* of the last KILL; 0 before */
};

/* Open files by which the engine reads what a box uses, without asking the broker;
 * each may be absent. */
enum box_counter {
    BOX_COUNTER_DISK, /* /workspace, O_PATH */
    BOX_COUNTER_CPU, BOX_COUNTER_OOM, BOX_COUNTER_PIDS, BOX_COUNTER_PEAK,
    BOX_COUNTERS
};

enum box_news_kind {
    BOX_NEWS_READY = 1, /* CREATE done */
    BOX_NEWS_PORTER,    /* fds: the porter's socket */
    BOX_NEWS_STARTED,   /* fds: enum box_started, then counters */
    BOX_NEWS_EXITED,    /* the occupant ended */
    BOX_NEWS_STAT,
    BOX_NEWS_EMPTY,  /* every process of the box is gone */
    BOX_NEWS_FAILED, /* the call failed at step, with error */
    BOX_NEWS_ZYGOTE, /* it is ready to fork */
    BOX_NEWS_ZYGOTE_GONE,
    BOX_NEWS_PARKED,
    BOX_NEWS_PREPARED,
    BOX_NEWS_AWAKE,
    BOX_NEWS_SWEPT,
    BOX_NEWS_FORKED_INTO,
    BOX_NEWS_KEEPER_GONE, /* and with it all that was parked */
    BOX_NEWS_STATE_LOST,  /* what was parked in a place has died */
};

/* What the engine has of an occupant. Its ends of the channel it made itself: none come. */
enum box_started {
    BOX_STARTED_IN, BOX_STARTED_OUT, BOX_STARTED_ERR, BOX_STARTED_WORDS, BOX_STARTED_REQUESTS,
    BOX_STARTED_LISTENER, BOX_STARTED_COUNTERS
};
#define BOX_NEWS_FDS (BOX_STARTED_COUNTERS + BOX_COUNTERS)

/* Which limit made the broker end a box by itself (box/proto/due.h). */
enum box_overdue { BOX_OVERDUE_NOT, BOX_OVERDUE_WALL, BOX_OVERDUE_CPU };

/* What a state had and does not have any more when it is gone back to. */
#define BOX_LOST(X)                                                                \
    X(PIPES, "pipes")                     /* what was in them, and who else has them */ \
    X(SOCKETS, "sockets")                                                          \
    X(EVENTS, "event descriptors")        /* epoll, eventfd, timerfd, inotify ... */ \
    X(POSITIONS, "positions in open files") /* of some; the others are set back */ \
    X(MEMORY, "shared memory")            /* its content is what it was last */    \
    X(UNNAMED, "files without a name")    /* deleted and open, memfd: the same */  \
    X(OPEN, "open files")                 /* fork: which cannot be opened again */ \
    X(FOLDER, "working folder")           /* fork: the same */                     \
    X(SETTINGS, "process settings")       /* fork: limits, priority */             \
    X(TIMERS, "timers")                   /* of timer_create */                    \
    X(SIGNALS, "pending signals")                                                  \
    X(SPECIAL, "socket files")            /* and other special files */            \
    X(LINKS, "hard links")                                                         \
    X(OUTSIDE, "files outside /workspace") /* changed since, or not carried */

enum box_lost {
#define X(id, text) BOX_LOST_##id,
    BOX_LOST(X)
#undef X
    BOX_LOST_COUNT
};
#define BOX_LOST_BIT(id) (1u << BOX_LOST_##id)
/* Beside them, in `lost` of PARKED: files of /workspace are in shared memory maps. */
#define BOX_MAPS_FILES (1u << 31)

struct box_news {
    uint32_t kind;
    uint32_t box;
    uint32_t step;    /* FAILED */
    int32_t error;    /* FAILED, PARKED, PREPARED, AWAKE: errno */
    uint32_t walls;   /* READY, STARTED: bits read back from the kernel */
    int32_t by_signal; /* EXITED */
    int32_t status;    /* EXITED: exit code or signal number */
    uint32_t overdue;  /* EXITED: enum box_overdue */
    uint32_t fds;      /* STARTED: bits of the descriptors that are there, in order */
    uint32_t state;    /* PARKED, PREPARED, AWAKE, FORKED_INTO, STATE_LOST */
    uint32_t end;      /* PARKED, PREPARED, AWAKE, FORKED_INTO: enum inject_end */
    uint32_t lost;     /* PARKED, AWAKE, FORKED_INTO: bits of BOX_LOST */
    uint64_t ticket;   /* the same: of the call that this answers; PLACE_LOST: its own */
    int64_t held_bytes; /* PARKED: by the live processes and what they share with copies */
    int64_t pause_us;  /* PARKED: how long the occupant stood still */
    struct box_stats stats; /* EXITED, STAT, EMPTY, SWEPT, PARKED */
};

/* Child to broker, before exec: how far it came. */
struct box_report {
    uint32_t step; /* BOX_STEP_NONE: all is well */
    int32_t error;
    uint32_t walls;
};

/* Exec block: header, then argc + envc strings, each ended by NUL. */
#define BOX_EXEC_MAGIC 0x63757065u
struct box_exec_head {
    uint32_t magic, argc, envc, bytes;
};

/* The porter's calls and answers. Paths are bytes, relative to /workspace. */
enum box_porter_op {
    BOX_PORTER_PUT = 1,
    BOX_PORTER_LIST,
    BOX_PORTER_READ, /* some bytes of a file, at most BOX_PORTER_PART */
    /* Of the resident porter alone; see box/files/curator.h: */
    BOX_PORTER_STAY,    /* the very first, from the broker: be resident; no answer */
    BOX_PORTER_SNAP,    /* keep /workspace in a snapshot */
    BOX_PORTER_RESTORE, /* make /workspace what is in a snapshot */
    BOX_PORTER_FORGET,  /* no answer */
    BOX_PORTER_SEND,    /* a snapshot to another session's porter, by a stream socket */
    BOX_PORTER_RECEIVE, /* and from one */
    BOX_PORTER_ABANDON, /* every upload that is under way; no answer */
};
enum box_entry_type { BOX_ENTRY_FILE, BOX_ENTRY_DIR, BOX_ENTRY_LINK, BOX_ENTRY_OTHER };

struct box_porter_call {
    uint32_t op;
    uint32_t tag;       /* comes back in every answer: whose it is */
    uint32_t readonly;  /* PUT */
    uint32_t replace;   /* PUT, resident: a file that is there gives way */
    uint32_t upload;    /* PUT, resident: a file in parts, by this number; 0: a whole file */
    uint32_t first;     /* PUT, upload: this part begins it */
    uint32_t more;      /* PUT, upload: this part is not the last */
    uint32_t snapshot;      /* SNAP, FORGET, RESTORE: below BOX_STATES; there it is nothing */
    uint32_t base;      /* SNAP: the snapshot to share files with; BOX_STATES: none */
    uint32_t compare;   /* SNAP: by bytes: memory maps may have changed what looks the same */
    uint64_t size;      /* PUT: bytes to take from the descriptor; READ: bytes wanted */
    uint64_t offset;    /* READ */
    int64_t since_ns;   /* LIST: 0, or only what is no directory and has this ctime or later;
                           RESTORE, SEND: 0, or whether something outside of /workspace has */
    int64_t within_ns;  /* LIST: how long it may take */
    uint32_t path_len;  /* READ: 0 is the file that was read last */
    char path[BOX_PATH_MAX];
}; /* fds: PUT: content; SEND, RECEIVE: the socket; STAY: the store, /proc/self/fd */

/* An answer is this head and `bytes` more. It never carries a descriptor: what a box made
 * is opened, read and closed in the porter, where only its own box waits for it. */
struct box_porter_answer {
    int32_t error;   /* 0, or errno */
    uint32_t tag;
    uint32_t last;   /* LIST: the list is over */
    uint32_t cut;    /* LIST, last: enum box_cut */
    uint32_t changed; /* SNAP: it is not what base is */
    uint32_t entries; /* SNAP: how many there are */
    uint32_t lost;    /* RESTORE, SEND: bits of BOX_LOST */
    uint64_t size;   /* READ: of the whole file, now; PUT, upload: bytes that have come */
    uint32_t bytes;  /* LIST: entries; READ: content, none at the file's end */
};
#define BOX_PORTER_PART 65536 /* the most bytes after the head */

/* Why a list is not whole; bits. */
enum box_cut {
    BOX_CUT_COUNT = 1, /* more than 20,000 entries, or 2 MiB of names */
    BOX_CUT_DEEP = 2,  /* more than 64 deep, or a path of more than 1,023 bytes */
    BOX_CUT_TIME = 4,
    BOX_CUT_CLOSED = 8, /* a directory cannot be opened */
};

/* One entry of a list; its path follows, then zeros up to a multiple of 8 bytes. */
struct box_porter_entry {
    uint64_t size;
    int64_t ctime_ns; /* since the Epoch */
    uint32_t type;    /* enum box_entry_type */
    uint32_t mode;    /* permissions */
    uint32_t path_len;
    uint32_t zero;
};
#define BOX_PORTER_ENTRY_ROOM(path_len) \
    ((sizeof(struct box_porter_entry) + (path_len) + 7) / 8 * 8)

#endif
