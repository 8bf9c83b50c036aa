/* The functions of libmicrohttpd that we call. The library is loaded when a service begins: linked,
 * it and GnuTLS would slow the start of every command. */
#ifndef SERVE_HTTP_MHD_H
#define SERVE_HTTP_MHD_H

#include <microhttpd.h>

#include "base/err.h"

#define MHD_SYMBOLS(X)                                                                        \
    X(start_daemon) X(stop_daemon) X(quiesce_daemon) X(run) X(get_timeout) X(get_daemon_info) \
    X(get_connection_info) X(suspend_connection) X(resume_connection) X(queue_response)       \
    X(create_response_from_buffer) X(create_response_from_callback) X(add_response_header)    \
    X(destroy_response) X(lookup_connection_value) X(get_connection_values_n)

struct mhd {
#define X(name) __typeof__(&MHD_##name) name;
    MHD_SYMBOLS(X)
#undef X
};
extern struct mhd mhd;

/* Fills mhd; once is enough. ERR_HOST with the fix if the library is not there. */
int mhd_load(struct err *err);

#endif
