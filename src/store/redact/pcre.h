/* The functions of PCRE2 that we call. The library is loaded when a store opens: linked, it would
 * slow the start of every command. No JIT: the service's filter refuses memory that is writable and
 * executable. */
#ifndef STORE_REDACT_PCRE_H
#define STORE_REDACT_PCRE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/err.h"

#define PCRE_SYMBOLS(X)                                                                       \
    X(compile) X(code_free) X(match) X(match_data_create) X(match_data_free)                  \
    X(get_ovector_pointer) X(match_context_create) X(match_context_free) X(set_match_limit)   \
    X(set_depth_limit) X(set_heap_limit) X(set_callout) X(get_error_message)

struct pcre {
#define X(name) __typeof__(&pcre2_##name##_8) name;
    PCRE_SYMBOLS(X)
#undef X
};
extern struct pcre pcre;

/* Fills pcre; once is enough, before threads use it. ERR_HOST with the fix if the library is not
 * there. */
int pcre_load(struct err *err);

#endif
