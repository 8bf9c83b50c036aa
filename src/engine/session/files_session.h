/* The files of a session, by its resident porter, whose socket stays the caller's. Begin a job,
 * then ask for one thing; `done` follows once, later (engine/talk/files.h). At the end, or before,
 * the caller calls files_drop. A socket has one job at a time; answers to a dropped job are told by
 * their tag, and discarded. */
#ifndef ENGINE_SESSION_FILES_SESSION_H
#define ENGINE_SESSION_FILES_SESSION_H

#include "engine/talk/files.h"

struct files_job *files_session_begin(struct files_job *job, struct loop *loop, int sock,
                                      void (*done)(struct files_job *job));

/* Put files, which must live until then; a file that exists is replaced. Paths are checked as those
 * of a request: ERR_INPUT, and nothing is put. */
void files_session_put(struct files_job *job, const struct request_file *files, size_t count);
/* Put one part of one file, which appears under its name with the last part. */
void files_session_put_part(struct files_job *job, const struct request_file *file,
                            struct files_part part);
/* Give up a file that was put in part, or all (0); as files_session_forget. */
int files_session_abandon(int sock, uint32_t upload);

/* As files_collect, but of files that changed since then: since_ns is of CLOCK_REALTIME_COARSE,
 * the clock of ctimes. A file with the ctime of that very tick may have been told already: `seen`
 * knows. Without a result nothing is told or fetched, but `seen` notes the files that are there:
 * after a restore, or a put. */
void files_session_collect(struct files_job *job, const struct request *request,
                           struct result *result, int64_t since_ns, struct files_seen *seen);

/* Everything there is: job->entries, job->count, sorted; job->cut. */
void files_session_list(struct files_job *job);

/* One file, from an offset on: job->content (heap; the caller may take it), content_len and sum.
 * ERR_ABSENT; ERR_INPUT with field "path" for a bad path or a file that is not regular or cannot be
 * read; ERR_LIMIT for more than `max` bytes. job->whole_size, inode and ctime_ns are the file's.
 * /workspace/x is x. */
void files_session_get(struct files_job *job, struct str path, uint64_t from, uint64_t max);
/* At most `most` bytes of it. */
void files_session_get_part(struct files_job *job, struct str path, uint64_t from, uint64_t most);
/* A file, a link or an empty directory (else ERR_CONFLICT). */
void files_session_remove(struct files_job *job, struct str path);

/* Snapshots: see box/files/curator.h. ERR_LIMIT, with err.sys: it does not fit, has too many files
 * or too deep folders, or a process keeps changing it. ERR_ABSENT: there is no such snapshot. Snap:
 * job->changed, job->kept. Restore of BOX_STATES empties /workspace. With since_ns, here and below,
 * job->lost says whether files outside of /workspace have changed since; 0: do not look. */
void files_session_snap(struct files_job *job, uint32_t snapshot, uint32_t base, bool compare);
void files_session_restore(struct files_job *job, uint32_t snapshot, int64_t since_ns);
/* Copy a snapshot from one session to another: each porter has an end of a pair of stream sockets,
 * which stays the caller's. */
void files_session_send(struct files_job *job, uint32_t snapshot, int to, int64_t since_ns);
void files_session_receive(struct files_job *job, uint32_t snapshot, int from);
/* At any time, also while a job is under way: it has no answer. 0, or -1 with errno. */
int files_session_forget(int sock, uint32_t snapshot);

#endif
