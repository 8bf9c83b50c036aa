/* Loads SQLite. Any process that opens the database; any thread. The library stays loaded. */
#include "store/db/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libsqlite3.so.0"

struct library library;
static struct sqlite3_vfs vfs;
static bool loaded, has_fts5;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* SQLite's own would resolve the links of the name, and then open the folder by its path. */
static int full_name(sqlite3_vfs *of, const char *name, int room, char *out)
{
    size_t len = strlen(name);
    (void)of;
    if (len >= (size_t)room)
        return SQLITE_CANTOPEN;
    memcpy(out, name, len + 1);
    return SQLITE_OK;
}

static bool add_vfs(void)
{
    const sqlite3_vfs *unix_vfs = library.vfs_find("unix");
    if (!unix_vfs)
        return false;
    vfs = *unix_vfs;
    vfs.zName = LIBRARY_VFS;
    vfs.pNext = NULL;
    vfs.xFullPathname = full_name;
    return library.vfs_register(&vfs, 0) == SQLITE_OK;
}

static void load(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define X(name) { "sqlite3_" #name, offsetof(struct library, name) },
        LIBRARY_SYMBOLS(X)
#undef X
    };
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool whole = handle != NULL;
    for (size_t i = 0; handle && i < array_len(symbols); i++) {
        void *found = dlsym(handle, symbols[i].name);
        whole = whole && found;
        memcpy((char *)&library + symbols[i].offset, &found, sizeof found);
    }
    loaded = whole && add_vfs();
    has_fts5 = loaded && library.compileoption_used("ENABLE_FTS5");
}

int library_load(struct err *err)
{
    pthread_once(&once, load);
    if (loaded && has_fts5)
        return 0;
    err_set(err, ERR_HOST,
            loaded ? "'" LIBRARY "' has no text search (FTS5)"
                   : "load '" LIBRARY "', which stores the records");
    err_hint(err, "install SQLite 3.38 or newer (Debian: apt-get install libsqlite3-0)");
    return -1;
}
