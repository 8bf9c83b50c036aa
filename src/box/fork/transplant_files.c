/* Open files and the working folder. The keeper reads in /proc what the parked process has open,
 * and the fresh process opens the same names in its own box, with its own rights. The attacker
 * chooses the names: only the fresh process ever opens them. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FILE 3
#define KEPT_FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECTORY | O_SYNC | O_CLOEXEC)

static const char *const roots[] = { "/workspace/", "/tmp/", "/usr/", "" };
static const char *const whole_roots[] = { "/workspace", "/tmp", "/usr", "" };
static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
                                       "" };
static const char deleted[] = " (deleted)";

static bool is_one_of(const char *name, const char *const *names)
{
    for (; **names; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

static bool is_deleted(const char *path, size_t len)
{
    return len >= sizeof deleted - 1 && strcmp(path + len - (sizeof deleted - 1), deleted) == 0;
}

static bool may_open(const char *path, size_t len, uint32_t mode)
{
    if (S_ISCHR(mode))
        return is_one_of(path, devices);
    if (is_deleted(path, len) || (!S_ISREG(mode) && !S_ISDIR(mode)))
        return false;
    return transplant_begins(path, len, roots) || is_one_of(path, whole_roots);
}

/* The bit for a descriptor that is lost, by the kernel's name for it. */
static uint32_t lost_of(const char *name, size_t len)
{
    static const struct {
        const char *heads[2];
        uint32_t bit;
    } kinds[] = {
        { { "pipe:", "" }, BOX_LOST_BIT(PIPES) },
        { { "socket:", "" }, BOX_LOST_BIT(SOCKETS) },
        { { "anon_inode:", "" }, BOX_LOST_BIT(EVENTS) },
        { { "/memfd:", "" }, BOX_LOST_BIT(UNNAMED) },
    };
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (transplant_begins(name, len, kinds[i].heads))
            return kinds[i].bit;
    }
    return is_deleted(name, len) ? BOX_LOST_BIT(UNNAMED) : BOX_LOST_BIT(OPEN);
}

/* --- of the parked process --- */

/* The offset and flags when the process was parked: the original may have moved them since. */
static void recall(const struct park_files *noted, struct park_file *file)
{
    for (uint32_t i = 0; i < noted->count; i++) {
        const struct park_file *then = &noted->at[i];
        if (then->fd != file->fd)
            continue;
        file->offset = then->offset < 0 ? file->offset : then->offset;
        file->flags = (file->flags & ~PARK_SET_FLAGS) | (then->flags & PARK_SET_FLAGS);
    }
}

/* The target of a link in /proc/PID; its length, 0 if it cannot be read. */
static size_t read_link(const struct transplant_side *side, const char *path, char *out)
{
    ssize_t len = readlinkat(side->session->proc, path, out, TRANSPLANT_PATH_MAX - 1);
    out[len > 0 ? len : 0] = 0;
    return len > 0 ? (size_t)len : 0;
}

static void note_file(struct transplant *t, const struct park_files *noted, int fd)
{
    const struct transplant_side *side = &t->from;
    struct transplant_file file = { .path = (uint32_t)t->paths_len };
    char *path = t->paths + t->paths_len, link[INJECT_PROC_PATH];
    struct stat info;
    if (t->file_count == TRANSPLANT_FILES_MAX ||
        sizeof t->paths - t->paths_len < TRANSPLANT_PATH_MAX) {
        t->report.lost_bits |= BOX_LOST_BIT(OPEN);
        return;
    }
    park_fd_path(link, side->at.pid, "fd/", fd);
    size_t len = read_link(side, link, path);
    if (len == 0 || fstatat(side->session->proc, link, &info, 0) < 0 ||
        park_read_file(side->session, side->at.pid, fd, &file.at) < 0 ||
        !may_open(path, len, info.st_mode)) {
        t->report.lost_bits |= lost_of(path, len);
        return;
    }
    recall(noted, &file.at);
    t->file[t->file_count++] = file;
    t->paths_len += len + 1;
}

int transplant_note_files(struct transplant *t, const struct park_files *noted)
{
    const struct transplant_side *side = &t->from;
    const int *channel = side->session->channel;
    char link[INJECT_PROC_PATH];
    struct park_fds fds;
    inject_proc_path(link, side->at.pid, "cwd");
    if (is_deleted(t->cwd, read_link(side, link, t->cwd)))
        t->cwd[0] = 0;
    if (park_list_fds(side->session->proc, side->at.pid, &fds) < 0)
        return -1;
    for (int fd = FIRST_FILE; fd < PARK_FDS; fd++) {
        if (fds.bit[fd / 64] >> fd % 64 & 1 && fd != channel[BOX_WORDS] &&
            fd != channel[BOX_REQUESTS])
            note_file(t, noted, fd);
    }
    return 0;
}

/* --- to the fresh process --- */

static enum inject_end write_name(struct transplant *t, const char *name, uint64_t *out)
{
    *out = t->desk + TRANSPLANT_DESK_DATA;
    return inject_write(&t->to.at, *out, name, strlen(name) + 1) < 0 ? INJECT_REFUSED : INJECT_OK;
}

static enum inject_end close_old(struct transplant *t)
{
    /* The numbers of the channel follow each other, in this order. */
    const uint64_t words = (uint64_t)t->to.session->channel[BOX_WORDS];
    const uint64_t requests = (uint64_t)t->to.session->channel[BOX_REQUESTS];
    const struct inject_order orders[] = {
        { SYS_close_range, { FIRST_FILE, words - 1, 0 } },
        { SYS_close_range, { requests + 1, UINT32_MAX, 0 } },
    };
    enum inject_end end = INJECT_OK;
    for (size_t i = words <= FIRST_FILE; end == INJECT_OK && i < array_len(orders); i++)
        end = transplant_do(t, orders[i], NULL);
    return end;
}

/* Move a descriptor to its number, and set its offset. */
static enum inject_end place(struct transplant *t, const struct park_file *file, uint64_t got)
{
    const uint64_t fd = (uint64_t)file->fd, flag = (uint64_t)(file->flags & O_CLOEXEC);
    enum inject_end end = INJECT_OK;
    if (got != fd)
        end = transplant_do(t, (struct inject_order){ SYS_dup3, { got, fd, flag } }, NULL);
    if (got != fd && end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_close, { got } }, NULL);
    if (end == INJECT_OK && file->offset > 0)
        end = transplant_do(t, (struct inject_order){ SYS_lseek, { fd, (uint64_t)file->offset,
                                                                   SEEK_SET } }, NULL);
    return end;
}

/* A file that the new box does not have, or refuses to open, is lost. */
static enum inject_end open_file(struct transplant *t, const struct transplant_file *file)
{
    const uint64_t flags = (uint64_t)((file->at.flags & KEPT_FLAGS) | O_NOCTTY | O_LARGEFILE);
    uint64_t name;
    long got = 0;
    enum inject_end end = write_name(t, t->paths + file->path, &name);
    if (end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_openat, { (uint64_t)AT_FDCWD, name,
                                                                    flags, 0 } }, &got);
    if (end == INJECT_OK)
        end = place(t, &file->at, (uint64_t)got);
    if (end == INJECT_REFUSED) {
        t->report.lost_bits |= BOX_LOST_BIT(OPEN);
        return INJECT_OK;
    }
    return end;
}

static enum inject_end enter_folder(struct transplant *t)
{
    uint64_t name;
    enum inject_end end = write_name(t, t->cwd, &name);
    if (end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_chdir, { name } }, NULL);
    if (end == INJECT_REFUSED) {
        t->report.lost_bits |= BOX_LOST_BIT(FOLDER);
        return INJECT_OK;
    }
    return end;
}

enum inject_end transplant_give_files(struct transplant *t)
{
    enum inject_end end = close_old(t);
    if (end == INJECT_OK)
        end = enter_folder(t);
    for (size_t i = 0; end == INJECT_OK && i < t->file_count; i++)
        end = open_file(t, &t->file[i]);
    return end;
}

#endif
