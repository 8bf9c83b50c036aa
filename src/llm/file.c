/* Whole files of the caller, read before rights are dropped. */
#include "llm/file.h"

#include <errno.h>

int llm_file_read(int fd, const char *path, struct buf *out, struct err *err)
{
    if (buf_read(out, fd) == 0)
        return 0;
    if (errno != EFBIG)
        return err_sys(err, "read '%.200s'", path);
    return err_set(err, ERR_LIMIT, "'%.200s' is larger than %zu KiB", path, out->max >> 10);
}
