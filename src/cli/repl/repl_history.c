/* The prompt's history: a text file in the state folder, for its owner alone. Runs in the cli
 * process; opened as the caller, so that root's belongs to root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "cli/repl/repl_edit.h"
#include "cli/link/state_files.h"

#define LINE_MAX_BYTES 4096
#define FILE_MAX_BYTES (256 << 10)
#define KEPT_BYTES (128 << 10) /* of a file that has become too long */

static void shorten(int fd, off_t size)
{
    own_buf kept = BUF_INIT(KEPT_BYTES);
    char *room = buf_room(&kept, KEPT_BYTES);
    ssize_t n = pread(fd, room, KEPT_BYTES, size - KEPT_BYTES);
    const char *newline = n > 0 ? memchr(room, '\n', (size_t)n) : NULL;
    if (!newline || ftruncate(fd, 0) < 0)
        return;
    if (io_write_all(fd, newline + 1, (size_t)(n - (newline + 1 - room))) < 0)
        return; /* only history is lost */
}

int cli_repl_history_open(const char *name)
{
    own_fd dir = cli_state_open();
    if (dir < 0)
        return -1;
    own_fd fd = openat(dir, name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                       0600);
    struct stat st;
    /* The folder may belong to another uid: write only to a plain file of our own. */
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        st.st_nlink != 1 || fchmod(fd, 0600) < 0)
        return -1;
    if (st.st_size > FILE_MAX_BYTES && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        shorten(fd, st.st_size);
        flock(fd, LOCK_UN);
    }
    return take_fd(&fd);
}

void cli_repl_history_load(int fd, void (*each)(void *user, const char *line), void *user)
{
    own_buf text = BUF_INIT(FILE_MAX_BYTES);
    char *room = fd >= 0 ? buf_room(&text, FILE_MAX_BYTES) : NULL;
    ssize_t n = room ? pread(fd, room, FILE_MAX_BYTES, 0) : 0;
    if (n <= 0)
        return;
    buf_grew(&text, (size_t)n);
    char *rest = text.at;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (line[0] && strlen(line) <= LINE_MAX_BYTES && str_is_utf8(str_of(line)))
            each(user, line);
}

void cli_repl_history_add(int fd, struct str line)
{
    own_buf whole = BUF_INIT(LINE_MAX_BYTES + 1);
    if (fd < 0 || line.len == 0 || line.len > LINE_MAX_BYTES || memchr(line.at, 0, line.len))
        return;
    buf_add_str(&whole, line);
    buf_add_text(&whole, "\n");
    if (io_write_all(fd, whole.at, whole.len) < 0)
        return; /* a full disk loses history, never a cell */
}
