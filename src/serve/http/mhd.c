/* Loads libmicrohttpd. Runs in the serve process, before it serves. The library stays loaded. */
#include "serve/http/mhd.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libmicrohttpd.so.12"

struct mhd mhd;

int mhd_load(struct err *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define X(name) { "MHD_" #name, offsetof(struct mhd, name) },
        MHD_SYMBOLS(X)
#undef X
    };
    if (mhd.run)
        return 0;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
    for (size_t i = 0; library && i < array_len(symbols); i++) {
        void *found = dlsym(library, symbols[i].name);
        whole = whole && found;
        memcpy((char *)&mhd + symbols[i].offset, &found, sizeof found);
    }
    if (whole)
        return 0;
    mhd.run = NULL;
    err_set(err, ERR_HOST, "load '" LIBRARY "', which serves HTTP");
    err_hint(err, "install libmicrohttpd (Debian: apt-get install libmicrohttpd12)");
    return -1;
}
