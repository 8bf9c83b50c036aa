/* Small files of the state folder, read whole and replaced whole. Any process that has the folder
 * open. A file that another user may write is refused: the folder can be anybody's. */
#ifndef STORE_STATE_FILE_H
#define STORE_STATE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* The whole file, appended to `out`, whose maximum holds. 1; 0: there is none; -1: an err.
 * *out_stat is that of the bytes that were read. */
int state_file_read(int folder, const char *name, struct buf *out, struct stat *out_stat,
                    struct err *err);
/* Replaces the file, for its owner alone: old or new, never a part. `durable` waits for the disk.
 * One writer at a time: hold a lock. */
int state_file_write(int folder, const char *name, struct str text, bool durable, struct err *err);
/* Holds a lock file until the descriptor is closed. `wait` false: ERR_BUSY where another has it.
 * -1: an err. */
int state_file_lock(int folder, const char *name, bool wait, struct err *err);

#endif
