/* Whole files of the caller. */
#ifndef LLM_FILE_H
#define LLM_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Reads the rest of `fd`, up to the limit of `out`; ERR_LIMIT past it. */
int llm_file_read(int fd, const char *path, struct buf *out, struct err *err);

#endif
