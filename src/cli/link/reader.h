/* The reader: a helper process that opens a few files as the caller, after the caller's rights were
 * dropped. The files are named before, once; it knows no others. */
#ifndef CLI_LINK_READER_H
#define CLI_LINK_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define CLI_READER_MAX 4

struct cli_reader {
    int sock; /* -1: none */
    pid_t pid;
    uint32_t asked; /* number of the last question */
};
#define CLI_READER_INIT ((struct cli_reader){ .sock = -1 })

/* Starts it for at most CLI_READER_MAX absolute paths; NULL is a file that is never there. */
int cli_reader_open(const char *const *paths, size_t count, struct cli_reader *out,
                    struct err *err);
/* Opens the file of that index. -1 with errno: ENOENT if it is missing, EINVAL if it is no regular
 * file, ETIMEDOUT if the helper does not answer within two seconds. */
int cli_reader_file(struct cli_reader *reader, size_t index);
void cli_reader_close(struct cli_reader *reader);

#endif
