/* Whole files of the caller, read before rights are dropped. */
#include "llm/file.h"

#include <errno.h>
#include <unistd.h>

int llm_file_read(int fd, const char *path, struct buf *out, struct err *err)
{
    for (;;) {
        char part[1 << 14];
        ssize_t n = read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read '%.200s'", path);
        if (n == 0)
            return 0;
        if (buf_add(out, part, (size_t)n) < 0)
            return err_set(err, ERR_LIMIT, "'%.200s' is larger than %zu KiB", path, out->max >> 10);
    }
}
