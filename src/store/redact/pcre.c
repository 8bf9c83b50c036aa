/* Loads PCRE2. Runs in the process that opens a store, before its threads begin. The library stays
 * loaded. */
#include "store/redact/pcre.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/attr.h"

#define LIBRARY "libpcre2-8.so.0"

struct pcre pcre;

int pcre_load(struct err *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define X(name) { "pcre2_" #name "_8", offsetof(struct pcre, name) },
        PCRE_SYMBOLS(X)
#undef X
    };
    if (pcre.compile)
        return 0;
    struct pcre found = { 0 };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
    for (size_t i = 0; library && i < array_len(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        whole = whole && symbol;
        memcpy((char *)&found + symbols[i].offset, &symbol, sizeof symbol);
    }
    if (whole) {
        pcre = found;
        return 0;
    }
    err_set(err, ERR_HOST, "load '" LIBRARY "', which finds keys in what is stored");
    err_hint(err, "install PCRE2 (Debian: apt-get install libpcre2-8-0)");
    return -1;
}
