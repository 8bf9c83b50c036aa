/* Mounts below /usr, from /proc/self/mountinfo. Runs in the engine and in the broker. */
#include "base/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define USR "/usr/"

/* Folders of /usr that packages fill. */
static const char *const filled[] = { "bin",    "games", "include", "lib",     "lib32",
                                      "lib64",  "libexec", "libx32", "sbin", "share" };

/* Is `path` this folder or below it? */
static bool is_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == 0 || path[len] == '/');
}

bool mounts_hide(const struct mounts *mounts, const char *path)
{
    for (const char *at = mounts->hidden; at < mounts->hidden + mounts->len; at += strlen(at) + 1) {
        if (is_in(path, at))
            return true;
    }
    return false;
}

bool mounts_part(const struct mounts *mounts, const char *folder)
{
    if (strcmp(folder, "/usr") == 0)
        return mounts->parted;
    for (const char *at = mounts->hidden; at < mounts->hidden + mounts->len; at += strlen(at) + 1) {
        if (is_in(at, folder) && strcmp(at, folder) != 0)
            return true;
    }
    return false;
}

static bool is_filled(const char *path)
{
    for (size_t i = 0; i < sizeof filled / sizeof filled[0]; i++) {
        if (strcmp(path + strlen(USR), filled[i]) == 0)
            return true;
    }
    return false;
}

static int take(void *to, const char *path)
{
    struct mounts *out = to;
    if (strncmp(path, USR, strlen(USR)) != 0)
        return 0;
    out->parted = true;
    if (is_in(path, MOUNTS_LOCAL))
        path = MOUNTS_LOCAL;
    if (is_filled(path) || mounts_hide(out, path))
        return 0;
    size_t size = strlen(path) + 1;
    if (size > MOUNTS_ROOM - out->len) {
        errno = E2BIG;
        return -1;
    }
    char *at = out->hidden, *end = at + out->len;
    while (at < end && strcmp(at, path) < 0)
        at += strlen(at) + 1;
    memmove(at + size, at, (size_t)(end - at));
    memcpy(at, path, size);
    out->len += size;
    return 0;
}

/* The fifth field of a line, where blanks are written as "\040". In place. */
static char *mount_point(char *line)
{
    for (int i = 0; line && i < 4; i++) {
        line = strchr(line, ' ');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return NULL;
    char *to = line;
    for (const char *from = line; *from && *from != ' '; from++) {
        bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
                     from[2] <= '7' && from[3] >= '0' && from[3] <= '7';
        *to++ = octal ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'))
                      : *from;
        from += octal ? 3 : 0;
    }
    *to = 0;
    return line;
}

struct reader {
    int (*seen)(void *to, const char *path);
    void *to;
    size_t have;
    bool cut; /* the first line was too long and its start has been handled */
    char text[32768]; /* a path of PATH_MAX, with each byte escaped to four */
};

/* Handle every whole line, and the start of a line that is too long: it has the path. */
static int take_lines(struct reader *in)
{
    bool full = in->have == sizeof in->text - 1;
    char *line = in->text;
    for (char *end; (end = strchr(line, '\n')) || (full && line == in->text); line = end + 1) {
        bool skip = in->cut;
        in->cut = !end;
        end = end ? end : in->text + in->have - 1;
        *end = 0;
        const char *path = skip ? NULL : mount_point(line);
        if (path && in->seen(in->to, path) < 0)
            return -1;
    }
    in->have -= (size_t)(line - in->text);
    memmove(in->text, line, in->have + 1);
    return 0;
}

int mounts_each(int (*seen)(void *to, const char *path), void *to)
{
    static struct reader in;
    ssize_t n = 0;
    int failed = 0, fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    in.seen = seen;
    in.to = to;
    in.have = 0;
    in.cut = false;
    while (!failed && (n = read(fd, in.text + in.have, sizeof in.text - 1 - in.have)) > 0) {
        in.have += (size_t)n;
        in.text[in.have] = 0;
        failed = take_lines(&in);
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return failed || n < 0 ? -1 : 0;
}

int mounts_read(struct mounts *out)
{
    out->parted = false;
    out->len = 0;
    return mounts_each(take, out);
}
