/* The files of a session, by its resident porter, whose socket stays the caller's. All
 * but forgetting are jobs as in engine/talk/files.h: `done` comes once, later; then, or in
 * the middle, the caller calls files_drop. One job at a time for each socket; an answer
 * that was due to a dropped job is told by its tag, and thrown away. */
#ifndef ENGINE_SESSION_FILES_SESSION_H
#define ENGINE_SESSION_FILES_SESSION_H

#include "engine/talk/files.h"

typedef void files_done(struct files_job *job);

/* Put files, which must live until then; a file that is there is replaced. Paths are
 * checked as those of a request: ERR_INPUT, and nothing is put. */
void files_session_put(struct files_job *job, struct loop *loop, int sock,
                       const struct request_file *files, size_t count, files_done *done);
/* The same of one part of one file, which appears under its name with the last part. */
void files_session_put_part(struct files_job *job, struct loop *loop, int sock,
                            const struct request_file *file, struct files_part part,
                            files_done *done);
/* Uploads that nobody goes on with; as files_session_forget. */
int files_session_abandon(int sock);

/* As files_collect, but of what changed since then: since_ns is of CLOCK_REALTIME_COARSE,
 * which is the clock of ctimes. What has the ctime of that very tick may have been told
 * already: `seen` knows. With a NULL result nothing is told or fetched, but `seen` takes
 * note of what is there: after a restore, or a put. */
void files_session_collect(struct files_job *job, struct loop *loop, int sock,
                           const struct request *request, struct result *result,
                           int64_t since_ns, struct files_seen *seen, files_done *done);

/* Everything there is: job->entries, job->count, sorted; job->cut. */
void files_session_list(struct files_job *job, struct loop *loop, int sock, files_done *done);

/* One file: job->content (heap; the caller may take it), content_len and sum. ERR_ABSENT;
 * ERR_INPUT with field "path" for what is no plain path or no regular file that can be
 * read; ERR_LIMIT where it has more than `most` bytes. /workspace/x is x. */
void files_session_get(struct files_job *job, struct loop *loop, int sock, struct str path,
                       uint64_t most, files_done *done);

/* Snapshots: see box/files/curator.h. ERR_LIMIT, with err.sys: it does not fit, is too many
 * or too deep, or somebody is too busy in it. ERR_ABSENT: there is nothing in the slot.
 * Snap: job->changed, job->kept. Restore of BOX_STATES empties /workspace. since_ns, here and
 * below: 0, or say in job->lost whether files outside of /workspace have changed since. */
void files_session_snap(struct files_job *job, struct loop *loop, int sock, uint32_t slot,
                        uint32_t base, bool compare, files_done *done);
void files_session_restore(struct files_job *job, struct loop *loop, int sock, uint32_t slot,
                           int64_t since_ns, files_done *done);
/* A slot of one session to a slot of another: each porter has an end of a pair of stream
 * sockets, which stays the caller's. */
void files_session_send(struct files_job *job, struct loop *loop, int sock, uint32_t slot, int to,
                        int64_t since_ns, files_done *done);
void files_session_receive(struct files_job *job, struct loop *loop, int sock, uint32_t slot,
                           int from, files_done *done);
/* At any time, also while a job is under way: it has no answer. 0, or -1 with errno. */
int files_session_forget(int sock, uint32_t slot);

#endif
