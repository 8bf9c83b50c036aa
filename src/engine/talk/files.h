/* Files into a box before it starts, and out of it after its end, by the porter: one job at a time,
 * driven by the engine's loop. For a session's porter, which stays, see
 * engine/session/files_session.h. */
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
    char sum[HASH_HEX_ROOM]; /* of its reported content in a session, else "" */
};

/* The sorted list of a session's last collect. */
struct files_seen {
    struct files_entry *entries;
    size_t count;
};
#define FILES_SEEN_INIT ((struct files_seen){ NULL, 0 })
void files_seen_done(struct files_seen *seen);

struct files_part {
    uint32_t upload; /* its number; 0: a whole file */
    bool first, more;
};

struct box_porter_answer;
struct files_job;
typedef int files_heard(struct files_job *job, const struct box_porter_answer *word,
                        const char *bytes);

struct files_job {
    struct loop *loop;
    struct loop_source porter; /* its socket, ours to close except in a session; fd -1: no job */
    struct loop_timer patience; /* with the porter's next answer */
    struct loop_timer deadline; /* of collecting: the rest is skipped then */
    bool keeps_sock; /* the socket is the session's */
    bool over; /* no more questions: done comes at once */
    uint32_t tag; /* of our calls: another tag belongs to a dropped job */
    files_heard *heard;
    int (*listed)(struct files_job *job); /* after the last entry: as `heard` */
    const struct request_file *puts;
    size_t put_count;
    bool replaces; /* puts replace existing files */
    struct files_part part; /* the single file is a part of one */
    const struct request *request;
    struct result *result; /* where collected files go */
    struct files_seen *seen;
    const struct request_file **inputs; /* of the request, in the order of entries */
    size_t next_input;
    size_t next; /* the current file */
    bool lists_dirs;
    struct str places; /* of attached files, which are no results: struct box_folder */
    uint32_t cut; /* enum box_cut: why the list is incomplete */
    struct files_entry *entries;
    size_t count;
    uint64_t bytes_taken, files_taken;
    bool bytes_hit, count_hit; /* a cap was reached on the way out */
    /* The file that is being read, in parts. */
    char *content;
    uint64_t content_len, content_size, content_asked, most;
    uint64_t from; /* where in the file the content begins */
    uint64_t whole_size; /* of the file */
    uint64_t inode;
    int64_t ctime_ns;
    bool is_part; /* at most `most` bytes of it are wanted */
    struct hash hash;
    char sum[HASH_HEX_ROOM]; /* of the complete content */
    const struct request_file *input; /* the input that it may still equal */
    bool keeps;
    uint32_t lost; /* of a restore, and of sent files: bits of BOX_LOST */
    bool changed; /* the snapshot differs from its base; a file that was put replaced one */
    uint32_t kept; /* entries in it */
    struct err err;
    /* Called once, last, unless the job is dropped before; see err. */
    void (*done)(struct files_job *job);
};
#define FILES_JOB_INIT                                                              \
    ((struct files_job){ .porter.fd = -1, .patience.at_ns = LOOP_NEVER,            \
                         .deadline.at_ns = LOOP_NEVER })

/* Gives every input file of the request to the porter behind `sock`, which it takes over. A file
 * that exceeds the box's disk is the request's fault: ERR_INPUT. */
void files_put(struct files_job *job, struct loop *loop, int sock, const struct request *request,
               void (*done)(struct files_job *job));
/* Lists the dead box's files, fetches new and changed ones within the caps into the result, and
 * records why others were skipped. Reads no file beyond the rest of the caps, and an input only as
 * long as it equals the one sent. After a second, and the time that the caps allow, the rest is
 * skipped. */
void files_collect(struct files_job *job, struct loop *loop, int sock,
                   const struct request *request, struct result *result,
                   void (*done)(struct files_job *job));
/* The same for the layer of a folder of the caller: what it holds becomes the result's `layer`, and
 * nothing an artifact. The porter sees the layer alone (BOX_OP_PORTER with `layer`). The caps are
 * the box's disk, and what the porter lists at most. */
void files_collect_layer(struct files_job *job, struct loop *loop, int sock,
                         const struct request *request, struct result *result,
                         void (*done)(struct files_job *job));
/* Frees everything; also in the middle, or without a job. */
void files_drop(struct files_job *job);

#endif
