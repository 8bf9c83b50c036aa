/* The input of `cupel images import`, opened as the caller: a file, standard input, or a folder,
 * which a helper process with the caller's uid turns into a tar. */
#ifndef CLI_IMAGES_IMAGES_INPUT_H
#define CLI_IMAGES_IMAGES_INPUT_H

#include <sys/types.h>

#include "base/err.h"

struct images_input {
    int fd;
    pid_t pid;          /* of the helper; 0: none */
    struct err *helper; /* in memory that it shares: how it failed */
};
#define IMAGES_INPUT_INIT ((struct images_input){ .fd = -1 })

/* "-" is standard input. Before the drop of rights. */
int images_input_open(const char *path, struct images_input *out, struct err *err);
/* After the last byte: did the helper write all of them? An err that it left stands before one that
 * the reader has because of it. */
int images_input_check(struct images_input *input, struct err *err);
void images_input_close(struct images_input *input);

#endif
