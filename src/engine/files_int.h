/* What files.c and files_session.c share, seen by no one else. Steps of a job return 0
 * where more is to come, 1 where it is done, -1 with job->err. */
#ifndef ENGINE_FILES_INT_H
#define ENGINE_FILES_INT_H

#include "box/proto.h"
#include "engine/files.h"

/* A new job on this socket; an err means that it cannot be. */
void files_begin(struct files_job *job, struct loop *loop, int sock,
                 void (*done)(struct files_job *job));
int files_ask(struct files_job *job, const struct box_porter_call *call, int fd);
/* The first step's outcome: where it was not 0, `done` comes soon, for it must not come
 * before the caller has gone on. */
void files_started(struct files_job *job, int state);

int files_put_next(struct files_job *job);
int files_hear_put(struct files_job *job, const struct box_porter_answer *word, int fd);
int files_hear_entry(struct files_job *job, const struct box_porter_answer *word, int fd);
/* Fetch what is in job->entries, one after the other, into the result. */
int files_open_next(struct files_job *job);
int files_hear_opened(struct files_job *job, const struct box_porter_answer *word, int fd);

/* The bytes of one file: what is really read, never more than asked for. Heap, or NULL. */
char *files_fetch(int fd, uint64_t size, uint64_t *out_len);
void files_free_entries(struct files_entry *entries, size_t count);

#endif
