/* Files into a box before it starts, and out of it after its end, by the porter:
 * one conversation at a time, driven by the engine's loop. Those of a session, whose
 * porter stays, are in engine/session/files_session.h. */
#ifndef ENGINE_TALK_FILES_H
#define ENGINE_TALK_FILES_H

#include "base/err.h"
#include "base/hash.h"
#include "base/loop.h"
#include "contract/request.h"
#include "contract/result.h"

struct files_entry {
    char *path;
    size_t len;
    uint32_t type; /* enum box_entry_type */
    uint32_t mode; /* permissions */
    uint64_t size;
    int64_t ctime_ns;
    char sum[HASH_HEX_ROOM]; /* of what was reported of it in a session, else "" */
};

/* What the last collect of a session met, sorted. */
struct files_seen {
    struct files_entry *entries;
    size_t count;
};
#define FILES_SEEN_INIT ((struct files_seen){ NULL, 0 })
void files_seen_done(struct files_seen *seen);

/* A part of a file that is put. */
struct files_part {
    uint32_t upload; /* its number; 0: it is a whole file */
    bool first, more;
};

struct box_porter_answer;
struct files_job;
typedef int files_heard(struct files_job *job, const struct box_porter_answer *word,
                        const char *bytes);

struct files_job {
    struct loop *loop;
    struct loop_source porter; /* its socket, ours to close but in a session; fd -1: no job */
    struct loop_timer patience; /* with the porter's next answer */
    struct loop_timer deadline; /* of collecting: the rest is left then */
    bool keeps_sock; /* the socket is the session's */
    bool over;       /* nothing is asked any more: done comes at once */
    uint32_t tag;    /* of our calls: an answer with another is one of a dropped job */
    files_heard *heard;
    int (*listed)(struct files_job *job); /* after the last entry: as `heard` */
    const struct request_file *puts;
    size_t put_count;
    bool replaces; /* what is there gives way to puts */
    struct files_part part; /* the one file that is put is a part of one */
    const struct request *request;
    struct result *result; /* what files come out into */
    struct files_seen *seen;
    const struct request_file **inputs; /* of the request, sorted as entries are */
    size_t next_input;
    size_t next; /* the file that is under way */
    bool lists_dirs;
    uint32_t cut; /* enum box_cut: why the list is not whole */
    struct files_entry *entries;
    size_t count, room;
    uint64_t bytes_taken, files_taken;
    bool bytes_hit, count_hit; /* a cap was met on the way out */
    /* The file that is being read, in parts. */
    char *content;
    uint64_t content_len, content_size, content_asked, most;
    struct hash hash;
    char sum[HASH_HEX_ROOM]; /* of the content, once it is whole */
    const struct request_file *input; /* that it may be as yet */
    bool keeps;
    uint32_t lost; /* of a restore, and of what is sent: bits of BOX_LOST */
    bool changed;  /* the snapshot is not what its base is */
    uint32_t kept; /* entries in it */
    struct err err;
    /* Called once, last, unless the job is dropped before: err tells. */
    void (*done)(struct files_job *job);
};
#define FILES_JOB_INIT                                                              \
    ((struct files_job){ .porter.fd = -1, .patience.at_ns = LOOP_NEVER,            \
                         .deadline.at_ns = LOOP_NEVER })

/* Give every input file of the request to the porter behind `sock`, which is taken
 * over. A file that does not fit on the box's disk is the request's fault:
 * ERR_INPUT. */
void files_put(struct files_job *job, struct loop *loop, int sock, const struct request *request,
               void (*done)(struct files_job *job));
/* List what is in the dead box, fetch new and changed files within the caps into
 * the result, and say of the rest why it was left. No file is read that does not fit what
 * is left of the caps; an input is read as far as it is what was sent. After a second, and
 * what the caps allow, the rest is left too. */
void files_collect(struct files_job *job, struct loop *loop, int sock,
                   const struct request *request, struct result *result,
                   void (*done)(struct files_job *job));
/* Let go of everything; also in the middle, or where there is no job. */
void files_drop(struct files_job *job);

#endif
