/* Loads libarchive. Any process that reads or writes images; any thread. It stays loaded. */
#include "image/archive/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/attr.h"

#define LIBRARY "libarchive.so.13"

static struct libarchive calls;
static bool whole;

static void load(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define X(name) { "archive_" #name, offsetof(struct libarchive, name) },
        LIBARCHIVE_SYMBOLS(X)
#undef X
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    whole = library != NULL;
    for (size_t i = 0; library && i < array_len(symbols); i++) {
        void *found = dlsym(library, symbols[i].name);
        whole = whole && found;
        memcpy((char *)&calls + symbols[i].offset, &found, sizeof found);
    }
}

const struct libarchive *libarchive(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (whole)
        return &calls;
    err_set(err, ERR_HOST, "load '" LIBRARY "', which reads and writes archives");
    err_hint(err, "install libarchive (Debian: apt-get install libarchive13)");
    return NULL;
}
