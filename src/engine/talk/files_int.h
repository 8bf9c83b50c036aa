/* Private to files.c, files_out.c and files_session.c. Steps of a job return 0: more to come, 1:
 * done, -1 with job->err. */
#ifndef ENGINE_TALK_FILES_INT_H
#define ENGINE_TALK_FILES_INT_H

#include "box/proto/proto.h"
#include "engine/talk/files.h"

/* A new job on this socket; fails with an err. */
void files_begin(struct files_job *job, struct loop *loop, int sock,
                 void (*done)(struct files_job *job));
int files_ask(struct files_job *job, const struct box_porter_call *call, int fd);
/* Ignores pending answers from now on. */
void files_new_tag(struct files_job *job);
/* The first step's outcome: if it is not 0, `done` follows soon, but not before the caller has
 * returned. */
void files_started(struct files_job *job, int state);
void files_finish(struct files_job *job);

files_heard files_hear_put;
int files_put_next(struct files_job *job);

/* Asks for the list; `listed` follows its last entry. */
int files_ask_list(struct files_job *job, int64_t since_ns);
int files_read_next(struct files_job *job);
files_heard files_hear_part;
void files_set_deadline(struct files_job *job);

/* Begins to read a file. The first answer has its size. */
int files_read(struct files_job *job, struct str path);
/* Takes a part of content_size bytes, and asks for more: 0. 1 after the last part: content,
 * content_len and sum are complete; -1. */
int files_take_part(struct files_job *job, struct str part);

void files_free_entries(struct files_entry *entries, size_t count);

#endif
