/* Open files and the current folder. What the parked process has open is asked of it, by
 * calls that it makes itself; the fresh one opens the same names in its own box, with its
 * own rights. Names are an attacker's: they are only ever given to the fresh process. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FILE 3
#define LOOK_MAX 65536 /* no number above is looked at */
#define KEPT_FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECTORY | O_SYNC)
#define NAME_AT 3072   /* in the page where answers are put: "/proc/self/fd/N" */

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
    if (is_deleted(path, len))
        return false;
    if (!S_ISREG(mode) && !S_ISDIR(mode))
        return false;
    return transplant_begins(path, len, roots) || is_one_of(path, whole_roots);
}

/* What is lost with a descriptor, by the kernel's name for it. */
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

/* The name behind a descriptor, NUL at its end; 0 in *out_len if there is none. */
static enum inject_end read_link(struct transplant *t, uint64_t room, int fd, char *out,
                                 size_t *out_len)
{
    char name[32] = "/proc/self/fd/", digits[12];
    size_t count = 0, at = strlen(name);
    for (uint32_t rest = (uint32_t)fd; rest || !count; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count)
        name[at++] = digits[--count];
    name[at] = 0;
    const uint64_t answer = room + TRANSPLANT_PAGE;
    const struct inject_order order = { SYS_readlinkat, { (uint64_t)AT_FDCWD, room + NAME_AT,
                                                          answer, TRANSPLANT_PATH_MAX - 1 } };
    long len = 0;
    *out_len = 0;
    if (inject_write(&t->from.at, room + NAME_AT, name, at + 1) < 0)
        return INJECT_REFUSED;
    enum inject_end end = transplant_call(&t->from.at, order, &len);
    if (end == INJECT_REFUSED)
        return INJECT_OK;
    if (end != INJECT_OK)
        return end;
    if (inject_read(&t->from.at, answer, out, (size_t)len) < 0)
        return INJECT_REFUSED;
    out[len] = 0;
    *out_len = strnlen(out, (size_t)len);
    return INJECT_OK;
}

/* Where it stood when the process was parked: what it was copied from may have moved it since. */
static void recall_place(const struct transplant *t, struct transplant_file *file)
{
    for (uint32_t i = 0; i < t->noted->count; i++) {
        const struct park_file *noted = &t->noted->at[i];
        if (noted->fd != file->fd)
            continue;
        file->place = noted->place < 0 ? file->place : noted->place;
        file->flags = (file->flags & ~PARK_SET_FLAGS) | (noted->flags & KEPT_FLAGS);
    }
}

/* What kind of file it is, how it was opened, and where it stands. */
static enum inject_end ask_file(struct transplant *t, uint64_t room, struct transplant_file *file,
                                uint32_t *out_mode)
{
    const uint64_t fd = (uint64_t)file->fd;
    struct stat info;
    long flags = 0, own_flags = 0, place = 0;
    enum inject_end end =
        transplant_call(&t->from.at, (struct inject_order){ SYS_fstat, { fd, room } }, NULL);
    if (end == INJECT_OK && inject_read(&t->from.at, room, &info, sizeof info) < 0)
        end = INJECT_REFUSED;
    if (end == INJECT_OK)
        end = transplant_call(&t->from.at, (struct inject_order){ SYS_fcntl, { fd, F_GETFL } },
                              &flags);
    if (end == INJECT_OK)
        end = transplant_call(&t->from.at, (struct inject_order){ SYS_fcntl, { fd, F_GETFD } },
                              &own_flags);
    if (end != INJECT_OK)
        return end;
    end = transplant_call(&t->from.at, (struct inject_order){ SYS_lseek, { fd, 0, SEEK_CUR } },
                          &place);
    file->place = end == INJECT_OK ? place : 0; /* not every device has one */
    file->flags = (int)flags & KEPT_FLAGS;
    recall_place(t, file);
    file->close_on_exec = own_flags & FD_CLOEXEC ? O_CLOEXEC : 0;
    *out_mode = info.st_mode;
    return end == INJECT_REFUSED ? INJECT_OK : end;
}

static enum inject_end note_file(struct transplant *t, uint64_t room, int fd)
{
    char *path = t->paths + t->paths_len;
    size_t len = 0;
    uint32_t mode = 0;
    struct transplant_file file = { .fd = fd, .path = (uint32_t)t->paths_len };
    if (t->file_count == TRANSPLANT_FILES_MAX ||
        sizeof t->paths - t->paths_len < TRANSPLANT_PATH_MAX) {
        transplant_lose(t, BOX_LOST_BIT(OPEN), fd, "too many", 8);
        return INJECT_OK;
    }
    enum inject_end end = read_link(t, room, fd, path, &len);
    if (end != INJECT_OK)
        return end;
    if (*path == '/' && len)
        end = ask_file(t, room, &file, &mode);
    if (end != INJECT_OK && end != INJECT_REFUSED)
        return end;
    if (end == INJECT_REFUSED || !may_open(path, len, mode)) {
        transplant_lose(t, lost_of(path, len), fd, path, len);
        return INJECT_OK;
    }
    t->file[t->file_count++] = file;
    t->paths_len += len + 1;
    return INJECT_OK;
}

static enum inject_end note_cwd(struct transplant *t, uint64_t room)
{
    long len = 0;
    const struct inject_order order = { SYS_getcwd, { room, TRANSPLANT_PATH_MAX } };
    enum inject_end end = transplant_call(&t->from.at, order, &len);
    if (end == INJECT_REFUSED)
        return INJECT_OK; /* it was removed: the name stays empty */
    if (end != INJECT_OK)
        return end;
    if (len > TRANSPLANT_PATH_MAX || inject_read(&t->from.at, room, t->cwd, (size_t)len) < 0)
        return INJECT_REFUSED;
    t->cwd[sizeof t->cwd - 1] = 0;
    return INJECT_OK;
}

/* Which of the numbers from `first` on are open: what poll does not call invalid. */
static enum inject_end look_at(struct transplant *t, uint64_t room, int first, size_t count,
                               struct pollfd *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (struct pollfd){ .fd = first + (int)i };
    if (inject_write(&t->from.at, room, out, count * sizeof *out) < 0)
        return INJECT_REFUSED;
    enum inject_end end = transplant_call(
        &t->from.at, (struct inject_order){ SYS_poll, { room, count, 0 } }, NULL);
    if (end == INJECT_OK && inject_read(&t->from.at, room, out, count * sizeof *out) < 0)
        end = INJECT_REFUSED;
    return end;
}

enum inject_end transplant_note_files(struct transplant *t, uint64_t room)
{
    struct pollfd look[512];
    const size_t at_once = sizeof look / sizeof look[0];
    uint64_t limit[2] = { 0 };
    const struct inject_order ask_limit = { SYS_prlimit64, { 0, 7 /* RLIMIT_NOFILE */, 0, room } };
    enum inject_end end = transplant_call(&t->from.at, ask_limit, NULL);
    if (end == INJECT_OK && inject_read(&t->from.at, room, limit, sizeof limit) < 0)
        end = INJECT_REFUSED;
    if (end == INJECT_OK)
        end = note_cwd(t, room);
    const size_t numbers = t->from.fd_size < LOOK_MAX ? t->from.fd_size : LOOK_MAX;
    const size_t step = limit[0] < at_once ? (size_t)limit[0] : at_once;
    for (size_t first = 0; step && end == INJECT_OK && first < numbers; first += step) {
        end = look_at(t, room, (int)first, step, look);
        for (size_t i = 0; end == INJECT_OK && i < step; i++) {
            const int fd = look[i].fd;
            if (fd >= FIRST_FILE && fd != t->from.channel[BOX_WORDS] &&
                fd != t->from.channel[BOX_REQUESTS] && !(look[i].revents & POLLNVAL))
                end = note_file(t, room, fd);
        }
    }
    return end;
}

/* --- to the fresh process --- */

static enum inject_end write_name(struct transplant *t, const char *name, uint64_t *out)
{
    *out = t->desk + TRANSPLANT_DESK_DATA;
    return inject_write(&t->to.at, *out, name, strlen(name) + 1) < 0 ? INJECT_REFUSED : INJECT_OK;
}

static enum inject_end close_old(struct transplant *t)
{
    /* They are one after the other, in this order. */
    const uint64_t words = (uint64_t)t->to.channel[BOX_WORDS];
    const uint64_t requests = (uint64_t)t->to.channel[BOX_REQUESTS];
    const struct inject_order orders[] = {
        { SYS_close_range, { FIRST_FILE, words - 1, 0 } },
        { SYS_close_range, { requests + 1, UINT32_MAX, 0 } },
    };
    enum inject_end end = INJECT_OK;
    for (size_t i = words <= FIRST_FILE; end == INJECT_OK && i < array_len(orders); i++)
        end = transplant_do(t, orders[i], NULL);
    return end;
}

static enum inject_end put_in_place(struct transplant *t, const struct transplant_file *file,
                                    uint64_t got)
{
    const uint64_t fd = (uint64_t)file->fd, flag = (uint64_t)file->close_on_exec;
    enum inject_end end = INJECT_OK;
    if (got != fd)
        end = transplant_do(t, (struct inject_order){ SYS_dup3, { got, fd, flag } }, NULL);
    if (got != fd && end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_close, { got } }, NULL);
    if (end == INJECT_OK && file->place > 0)
        end = transplant_do(t, (struct inject_order){ SYS_lseek, { fd, (uint64_t)file->place,
                                                                   SEEK_SET } }, NULL);
    return end;
}

/* What its box does not have, or does not let it open, is lost. */
static enum inject_end open_file(struct transplant *t, const struct transplant_file *file)
{
    const char *path = t->paths + file->path;
    const uint64_t flags = (uint64_t)(file->flags | file->close_on_exec | O_NOCTTY | O_LARGEFILE);
    uint64_t name;
    long got = 0;
    enum inject_end end = write_name(t, path, &name);
    if (end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_openat, { (uint64_t)AT_FDCWD, name,
                                                                    flags, 0 } }, &got);
    if (end == INJECT_OK)
        end = put_in_place(t, file, (uint64_t)got);
    if (end == INJECT_REFUSED) {
        transplant_lose(t, BOX_LOST_BIT(OPEN), file->fd, path, strlen(path));
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
        transplant_lose(t, BOX_LOST_BIT(FOLDER), -1, "current folder", 14);
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
