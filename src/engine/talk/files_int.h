/* What files.c, files_out.c and files_session.c share, seen by no one else. Steps of a job
 * return 0 where more is to come, 1 where it is done, -1 with job->err. */
#ifndef ENGINE_TALK_FILES_INT_H
#define ENGINE_TALK_FILES_INT_H

#include "box/proto/proto.h"
#include "engine/talk/files.h"

/* A new job on this socket; an err means that it cannot be. */
void files_begin(struct files_job *job, struct loop *loop, int sock,
                 void (*done)(struct files_job *job));
int files_ask(struct files_job *job, const struct box_porter_call *call, int fd);
/* What was asked before and not answered yet is not heard any more. */
void files_new_tag(struct files_job *job);
/* The first step's outcome: where it was not 0, `done` comes soon, for it must not come
 * before the caller has gone on. */
void files_started(struct files_job *job, int state);
void files_finish(struct files_job *job);

files_heard files_hear_put;
int files_put_next(struct files_job *job);

/* Ask for the list, then for what is in it: `listed` goes on after the last entry. */
int files_ask_list(struct files_job *job, int64_t since_ns);
/* Fetch what is in job->entries, one after the other, into the result. */
int files_read_next(struct files_job *job);
files_heard files_hear_part;
/* From here on collecting has so much time. */
void files_set_deadline(struct files_job *job);

/* Begin to read a file. The first part's answer says its size. */
int files_read(struct files_job *job, struct str path);
/* Take over a part of content_size bytes, and ask for more: 0. 1 where it was the last, and
 * content, content_len and sum are whole; -1. */
int files_take_part(struct files_job *job, struct str part);

void files_free_entries(struct files_entry *entries, size_t count);

#endif
