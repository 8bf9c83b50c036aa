/* `cupel run --curl`: the request as a command for a shell. */
#ifndef CLI_RUN_CURL_H
#define CLI_RUN_CURL_H

#include "base/buf.h"
#include "base/err.h"
#include "contract/request.h"

/* The address of the running service, or where one is expected: heap. Called as the caller. */
char *cli_curl_address(void);
/* Appends a command that sh understands, whatever the request holds. Pure. */
int cli_curl_write(const char *address, const struct request *request, struct buf *out,
                   struct err *err);
/* One word of sh: in single quotes. */
void cli_curl_quote(struct str text, struct buf *out);

#endif
