/* Messages between the engine and the broker: fixed-size structs with descriptors attached, nothing
 * free-form. Both sides are built from this one header, so there is no version; any other size ends
 * the broker. */
#ifndef BOX_PROTO_PROTO_H
#define BOX_PROTO_PROTO_H

#include <stdint.h>

#include "box/wall/walls.h"

#define BOX_MAX 128 /* boxes at once in one broker */
#define BOX_ZYGOTES_MAX 16 /* and zygotes */
#define BOX_PLANTS_MAX 40 /* cupel's own read-only files in a box */
#define BOX_PLANT_NAME 48 /* bytes of a plant's name, with NUL */
#define BOX_PLANT_DIR "/usr/lib/cupel"
#define BOX_PLANT_PROGRAM "tool" /* the plants that may be executed */
#define BOX_PLANT_SHELL "shell"
#define BOX_PATH_MAX 1024
#define BOX_WORK "w" /* the folder of the writable part that is mounted as /workspace */
#define BOX_EXEC_ROOM (640u << 10) /* bytes of one exec block */
#define BOX_EXEC_STRINGS 2048 /* args and env together */
#define BOX_STATES 24 /* states that a session can keep */
#define BOX_FROZEN_MAX_S 3600 /* a box that stays frozen longer is ended */
#define BOX_ATTACHED (BOX_MAX - 1) /* the only box that folders and files of the caller appear in */
#define BOX_ATTACH_FILES 32 /* attached files at most */
#define BOX_ATTACH_TREES 9 /* attached folders beside that of /workspace */
#define BOX_PLACES_MAX 512 /* records in a list of places */
#define BOX_PLACES_ROOM (64u << 10) /* and its bytes */

/* The channel between an occupant and the engine: two pipes, not a socket. A socket could carry
 * descriptors, and the last close of one can block for as long as its sender wants. Arrays of both
 * ends use this order. */
enum box_channel { BOX_WORDS, BOX_REQUESTS, BOX_CHANNEL };
#define BOX_FD_WORDS 3 /* the occupant writes, the engine reads */
#define BOX_FD_REQUESTS 4 /* the engine writes, the occupant reads */
#define BOX_FD_LAST BOX_FD_REQUESTS

/* The step of building a box that failed; the host makes the sentence. */
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
    X(ZYGOTE, "fork from the zygote")                                   \
    X(TREE_OF_IMAGE, "find the image's files")                          \
    X(PARTED_IMAGE, "put an image over a /usr with mounts below it")    \
    X(FOLDER, "show the folder as /workspace")                          \
    X(FOLDER_XATTR, "keep changes to the folder in a layer")            \
    X(PLACES, "hide or place files of /workspace")                      \
    X(PEER, "hear from the child")

enum box_step {
#define X(id, text) BOX_STEP_##id,
    BOX_STEPS(X)
#undef X
};

/* Hierarchies, in the order of their descriptors. */
enum box_cg { BOX_CG_V2, BOX_CG_MEMORY, BOX_CG_PIDS, BOX_CG_CPU, BOX_CG_CPUACCT, BOX_CG_COUNT };

enum box_op {
    BOX_OP_SETUP = 1, /* once, first: the bootstrap's preparations */
    BOX_OP_CREATE,    /* build a box; plants attached */
    BOX_OP_PORTER,    /* start a porter in it: answers with its socket */
    BOX_OP_START,     /* exec the occupant; fds: exec block, channel */
    BOX_OP_SIGNAL,    /* signal the occupant's process group */
    BOX_OP_STAT,
    BOX_OP_KILL,      /* lift limits, kill all; EMPTY follows */
    BOX_OP_RELEASE,   /* forget a box (killed first if need be) */
    BOX_OP_BEGIN,     /* a waiting occupant begins its work: watch it from now on */
    BOX_OP_FORK,      /* fork the occupant from a zygote; fds: channel */
    BOX_OP_ZYGOTE,    /* start a zygote; fds: plants, exec block */
    BOX_OP_RETIRE,    /* end a zygote; its occupants live on */
    /* For a session, whose occupant was started with `session`: */
    BOX_OP_PARK,      /* copy the waiting occupant into a free state: PARKED */
    BOX_OP_WAKE,      /* a copy of a state becomes the occupant; fds: channel: AWAKE */
    BOX_OP_DROP,      /* drop a state; no answer */
    BOX_OP_PREPARE,   /* test that a SWEEP and a WAKE of a state will succeed: PREPARED */
    BOX_OP_FORK_INTO, /* a state becomes that of another box's waiting occupant: FORKED_INTO,
                       * told for the first box */
    BOX_OP_SWEEP,     /* kill all but init and the states: SWEPT, once they are gone */
    BOX_OP_FREEZE,    /* stop the code of the box, or let it go on; no answer */
};

/* cupel's own read-only files, under BOX_PLANT_DIR. */
struct box_plants {
    uint32_t count;
    char name[BOX_PLANTS_MAX][BOX_PLANT_NAME];
    char font_list[BOX_PLANT_NAME]; /* the plant that /tmp/.matplotlib links to, or "" */
    uint32_t again; /* later boxes will have the same files: make a template */
    uint32_t late_code; /* main.sh leads to a descriptor of the process that opens it:
                         * drivers/cells.sh */
};

/* The image of a box or zygote; all zero: the host's. Its tree is the folder `hex` of the attached
 * images (BOX_ATTACH_IMAGES of box/host/box.h); of hex the broker checks that it is 64 of 0-9 a-f
 * and a NUL. A box without a way to the tree fails with BOX_STEP_TREE_OF_IMAGE. */
struct box_image {
    char hex[65];
    uint8_t on_host; /* the tree only adds: /usr is that of the host below it */
    uint8_t present;
};

/* The kinds of /workspace. All but the first are for the box BOX_ATTACHED alone: another fails with
 * BOX_STEP_FOLDER and EPERM. */
enum box_folder_mode {
    BOX_FOLDER_NONE,    /* an empty folder of the box's own */
    BOX_FOLDER_OVERLAY, /* the attached folder below a layer of the box's own: what is written,
                         * made or removed stays in the layer, which counts as disk */
    BOX_FOLDER_READ,    /* the attached folder, read-only */
    BOX_FOLDER_WRITE,   /* the attached folder itself; it must be attached as writable */
};

/* With `places`, one more descriptor follows those of the plants: a file of at most
 * BOX_PLACES_ROOM bytes with at most BOX_PLACES_MAX records. A record is a letter and a path
 * relative to /workspace, ended by NUL:
 *   h  hidden: an empty file or folder that nobody can write covers it. Links are followed inside
 *      /workspace; a path that leads nowhere or outside is nothing to hide, and is skipped.
 *   r  read-only, in the same way.
 *   f  the next of the attached files, in their order, appears there, read-only. Folders above it
 *      are made; it must not exist yet. Not with BOX_FOLDER_READ.
 *   d  the next of the attached trees appears there, read-only, in the same way.
 *   v  the next of the attached trees appears, read-only, at this path of the whole box, in a
 *      folder that nothing else makes. Records after it are relative to that tree, not to
 *      /workspace.
 * They hold for the life of the box, also against renames of folders above. */
struct box_folder {
    uint32_t mode; /* enum box_folder_mode */
    uint32_t places;
};

struct box_call {
    uint32_t op;
    uint32_t box; /* or zygote */
    union {
        struct {
            uint32_t uid_count; /* ids mapped in W: 1, or a range */
            uint32_t cgroups; /* bits of box_cg; one descriptor each */
            uint32_t v2_controllers; /* v2 base has memory, pids, cpu: bits of box_cg */
            uint32_t images, folder, files, trees; /* attached mounts, in this order from
                                                    * BOOT_FD_ATTACHED on; folder: 2 is
                                                    * writable */
        } setup; /* fds: init program, box/proto/due.h, then cgroup bases */
        struct {
            int64_t memory_bytes, disk_bytes, disk_inodes, pids, cpu_thousandths;
            struct box_plants plants;
            struct box_image image;
            struct box_folder folder;
        } create; /* fds: one for each plant, the list of places */
        struct {
            uint32_t collect; /* 0: before the start, inside the box's limits; 1: after its end */
            uint32_t resident; /* of a session: it stays, and keeps copies of files */
            uint32_t layer; /* BOX_FOLDER_OVERLAY: it sees the layer of changes alone, by paths of
                             * /workspace: LIST and READ */
        } porter;
        struct {
            uint32_t required; /* walls that must stand before the occupant starts */
            int64_t cpu_s; /* RLIMIT_CPU, a second guard of the CPU time limit */
            int64_t open_files;
            uint32_t waits; /* the request comes later: BEGIN follows */
            uint32_t zygote; /* FORK: the zygote's number */
            uint32_t rehearsal; /* FORK: see box/zygote/zygote.h */
            uint32_t session; /* the occupant stays: it can be parked, and the box outlives
                                   * it */
        } start; /* fds: START: exec block; both: the occupant's ends of the channel */
        struct {
            struct box_plants plants;
            struct box_image image;
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
            uint64_t ticket; /* of the state: set by PARK, checked by all others */
        } keep; /* PARK, WAKE, DROP, PREPARE, FORK_INTO; fds: WAKE: the occupant's ends */
        struct {
            uint32_t on; /* 0: go on */
        } freeze;
        struct {
            uint32_t plain; /* no suspicion against the box: leave its limits as they are */
        } kill;
    };
};

struct box_stats {
    int64_t cpu_us; /* since the start of the occupant; -1 unknown */
    int64_t memory_peak_bytes; /* -1 unknown */
    int64_t oom_kills;
    int64_t pids_hits;
    int64_t most_tasks; /* maximum seen at once where no cgroup counts them, else 0 */
    int64_t blocks_free, inodes_free; /* of the writable part */
    int64_t blocks_at_start, inodes_at_start;
    int64_t work_size, work_at_start; /* size of /workspace as a directory; it was empty at the
                                       * start */
    /* The group's counters at the start. */
    int64_t cpu_us_at_start, oom_kills_at_start, pids_hits_at_start;
    int64_t kill_to_empty_us; /* of the last KILL; 0 before */
};

/* Open files from which the engine reads a box's usage without asking the broker; each may be
 * absent. */
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
    BOX_NEWS_KEEPER_GONE, /* all its states are lost with it */
    BOX_NEWS_STATE_LOST,  /* a state's copy has died */
};

/* The engine's descriptors of an occupant. The engine made its ends of the channel itself: the
 * broker sends none. */
enum box_started {
    BOX_STARTED_IN, BOX_STARTED_OUT, BOX_STARTED_ERR, BOX_STARTED_WORDS, BOX_STARTED_REQUESTS,
    BOX_STARTED_LISTENER, BOX_STARTED_COUNTERS
};
#define BOX_NEWS_FDS (BOX_STARTED_COUNTERS + BOX_COUNTERS)

/* The limit for which the broker ended a box by itself (box/proto/due.h). LOOSE: its code went on
 * while it was frozen. */
enum box_overdue { BOX_OVERDUE_NOT, BOX_OVERDUE_WALL, BOX_OVERDUE_CPU, BOX_OVERDUE_LOOSE };

/* Parts of a state that are lost when the session returns to it. */
#define BOX_LOST(X)                                                                \
    X(PIPES, "pipes")                     /* their content, and their other users */    \
    X(SOCKETS, "sockets")                                                          \
    X(EVENTS, "event descriptors")        /* epoll, eventfd, timerfd, inotify ... */ \
    X(POSITIONS, "positions in open files") /* of some files; the others are restored */ \
    X(MEMORY, "shared memory")            /* keeps its latest content */           \
    X(UNNAMED, "files without a name")    /* deleted but open, memfd: keep their latest content */ \
    X(OPEN, "open files")                 /* fork: files that cannot be opened again */ \
    X(FOLDER, "working folder")           /* fork: it cannot be opened again */    \
    X(SETTINGS, "process settings")       /* fork: limits, priority */             \
    X(TIMERS, "timers")                   /* of timer_create */                    \
    X(SIGNALS, "pending signals")                                                  \
    X(SPECIAL, "socket files")            /* and other special files */            \
    X(LINKS, "hard links")                                                         \
    X(OUTSIDE, "files outside /workspace") /* changed since, or not copied */

enum box_lost {
#define X(id, text) BOX_LOST_##id,
    BOX_LOST(X)
#undef X
    BOX_LOST_COUNT
};
#define BOX_LOST_BIT(id) (1u << BOX_LOST_##id)
/* One more bit in `lost` of PARKED: shared memory maps show files of /workspace. */
#define BOX_MAPS_FILES (1u << 31)

struct box_news {
    uint32_t kind;
    uint32_t box;
    uint32_t step; /* FAILED */
    int32_t error; /* FAILED, PARKED, PREPARED, AWAKE: errno */
    uint32_t walls; /* READY, STARTED: bits that were read back from the kernel; FAILED at POSTURE:
                     * those that are required and do not stand */
    int32_t by_signal; /* EXITED */
    int32_t status; /* EXITED: exit code or signal number */
    uint32_t overdue; /* EXITED: enum box_overdue */
    uint32_t fds; /* STARTED: bits of the attached descriptors, in order */
    uint32_t state; /* PARKED, PREPARED, AWAKE, FORKED_INTO, STATE_LOST */
    uint32_t end; /* PARKED, PREPARED, AWAKE, FORKED_INTO: enum inject_end */
    uint32_t lost; /* PARKED, AWAKE, FORKED_INTO: bits of BOX_LOST */
    uint64_t ticket; /* of the call that this answers; STATE_LOST: the state's own */
    int64_t held_bytes; /* PARKED: by the live processes, with memory that they share with copies */
    int64_t pause_us; /* PARKED: how long the occupant was stopped */
    struct box_stats stats; /* EXITED, STAT, EMPTY, SWEPT, PARKED */
};

/* Child to broker, before exec: the step that it reached. */
struct box_report {
    uint32_t step; /* BOX_STEP_NONE: success */
    int32_t error;
    uint32_t walls; /* as in box_news */
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
    BOX_PORTER_READ, /* at most BOX_PORTER_PART bytes of a file */
    /* Only the resident porter; see box/files/curator.h: */
    BOX_PORTER_STAY,    /* the first call, from the broker: become resident; no answer */
    BOX_PORTER_SNAP,    /* copy /workspace into a snapshot */
    BOX_PORTER_RESTORE, /* make /workspace equal to a snapshot */
    BOX_PORTER_FORGET,  /* no answer */
    BOX_PORTER_SEND,    /* a snapshot to another session's porter, by a stream socket */
    BOX_PORTER_RECEIVE, /* receive such a snapshot */
    BOX_PORTER_ABANDON, /* drop an unfinished upload, or all; no answer */
    BOX_PORTER_REMOVE,  /* a file, a link or an empty directory */
};
enum box_entry_type {
    BOX_ENTRY_FILE, BOX_ENTRY_DIR, BOX_ENTRY_LINK, BOX_ENTRY_OTHER,
    /* In a layer of changes: */
    BOX_ENTRY_GONE,  /* the folder's entry of this name was removed */
    BOX_ENTRY_FRESH, /* a directory that shows nothing of the folder's one of this name */
};

struct box_porter_call {
    uint32_t op;
    uint32_t tag; /* comes back in every answer: identifies the call */
    uint32_t readonly; /* PUT */
    uint32_t replace; /* PUT, resident: overwrite an existing file */
    uint32_t upload; /* PUT, resident: number of a file that comes in parts; 0: a whole file;
                      * ABANDON: 0: all */
    uint32_t first; /* PUT, upload: this is the first part */
    uint32_t more; /* PUT, upload: more parts follow */
    uint32_t snapshot; /* below BOX_STATES; RESTORE of BOX_STATES empties /workspace */
    uint32_t base; /* SNAP: the snapshot to share files with; BOX_STATES: none */
    uint32_t compare; /* SNAP: compare bytes: memory maps may change a file without its times */
    uint64_t size; /* PUT: bytes to take from the descriptor; READ: bytes wanted */
    uint64_t offset; /* READ */
    uint32_t once; /* READ: no other part of the file follows */
    int64_t since_ns; /* LIST: 0, or only non-directories with this ctime or later; RESTORE,
                         * SEND: 0, or report changes outside /workspace since then */
    int64_t within_ns; /* LIST: maximum time */
    uint32_t path_len; /* READ: 0 means the file of the last READ */
    char path[BOX_PATH_MAX];
}; /* fds: PUT: content; SEND, RECEIVE: the socket; STAY: the store, /proc/self/fd */

/* An answer is this head and `bytes` more. It never carries a descriptor: the porter itself opens,
 * reads and closes files of a box, so only that box waits for them. */
struct box_porter_answer {
    int32_t error; /* 0, or errno */
    uint32_t tag;
    uint32_t last; /* LIST: the list ends here */
    uint32_t cut; /* LIST, last: enum box_cut */
    uint32_t changed; /* SNAP: it differs from base; PUT, replace: there was a file */
    uint32_t entries; /* SNAP: number of entries */
    uint32_t lost; /* RESTORE, SEND: bits of BOX_LOST */
    uint64_t size; /* READ: of the whole file, now; PUT, upload: bytes received */
    int64_t ctime_ns; /* READ: of the file, as the next */
    uint64_t inode;
    uint32_t bytes; /* LIST: entries; READ: content, none at the file's end */
};
#define BOX_PORTER_PART 65536 /* maximum of bytes after the head */

/* Why a list is incomplete; bits. */
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
    uint32_t type; /* enum box_entry_type */
    uint32_t mode; /* permissions */
    uint32_t path_len;
    uint32_t zero;
};
#define BOX_PORTER_ENTRY_ROOM(path_len) \
    ((sizeof(struct box_porter_entry) + (path_len) + 7) / 8 * 8)

#endif
