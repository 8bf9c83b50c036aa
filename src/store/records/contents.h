/* Bytes by their sum: inputs, artifacts, long outputs. Small ones are rows of the database, large
 * ones files of STATE/contents. Any process with a connection. Blocking.
 *
 * 1. Without a row nothing is served. A file is whole before its row is written.
 * 2. A reader checks the sum.
 * 3. A writer shares the folder's lock from the file to the commit of its row; a sweep holds it
 *    alone: a file without a row is nobody's then. */
#ifndef STORE_RECORDS_CONTENTS_H
#define STORE_RECORDS_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "store/db/db.h"

#define CONTENTS_INLINE (16u << 10) /* bytes of a row; larger ones are files */
#define CONTENTS_DIRS 256

/* Appends the bytes to `out`. ERR_ABSENT: they are not stored; ERR_HOST: they are damaged. */
int contents_read(struct db *db, int state_dir, const char *sha256, struct buf *out,
                  struct err *err);

/* The folder, made where it is absent; its descriptor, or -1. */
int contents_open(int state_dir, struct err *err);
/* Before the transaction, for bytes above CONTENTS_INLINE: their file, if there is none. Takes the
 * shared lock of the folder, which contents_unlock gives back after the commit. `durable` waits for
 * the disk. */
int contents_write(int dir, const char *sha256, struct str bytes, bool durable, struct err *err);
/* The same for the first `size` bytes of a file, in portions. */
int contents_write_file(int dir, const char *sha256, int from, size_t size, bool durable,
                        struct err *err);
void contents_unlock(int dir);
/* In the transaction: the row, if there is none. */
int contents_add(struct db *db, const char *sha256, struct str bytes, struct err *err);

/* One portion: at most `rows` contents that lost their last use. How many it looked at; 0: nothing
 * is left, or a writer is there; -1: an err. */
int contents_sweep(struct db *db, int dir, int rows, struct err *err);
/* One of the CONTENTS_DIRS folders: files without a row. */
int contents_sweep_files(struct db *db, int dir, unsigned number, struct err *err);

#endif
