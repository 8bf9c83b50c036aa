/* SQLite, loaded when it is first needed: linked in, it would slow down every command's start.
 * Private to src/store/db. */
#ifndef STORE_DB_LIBRARY_H
#define STORE_DB_LIBRARY_H

#include <sqlite3.h>

#include "base/err.h"

#define LIBRARY_SYMBOLS(X)                                                                    \
    X(open_v2) X(close_v2) X(exec) X(errmsg) X(extended_errcode) X(extended_result_codes)     \
    X(system_errno) X(db_config) X(db_readonly) X(limit) X(busy_handler) X(progress_handler)  \
    X(prepare_v3) X(step) X(reset) X(finalize) X(clear_bindings) X(bind_int64) X(bind_double) \
    X(bind_text64) X(bind_blob64) X(bind_null) X(column_int64) X(column_double)               \
    X(column_text) X(column_blob) X(column_bytes) X(column_type) X(changes64)                 \
    X(last_insert_rowid) X(get_autocommit) X(wal_hook) X(wal_checkpoint_v2) X(vfs_find)       \
    X(vfs_register) X(compileoption_used) X(sql)

struct library {
#define X(name) typeof(&sqlite3_##name) name;
    LIBRARY_SYMBOLS(X)
#undef X
};
extern struct library library;

/* The name of a file system layer that takes names as they are: "/proc/self/fd/N/..." reaches a
 * folder that the process has open and may not be able to name. */
#define LIBRARY_VFS "cupel"

/* Any thread. */
int library_load(struct err *err);

#endif
