/* Extended attributes: compared, copied, sent. Only in the porter; no heap. User code chooses
 * names, values and their number; the kernel limits each to 64 KiB, and all of a box by its
 * inodes. */
#include "box/files/curator_attrs.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/attr.h"

#define ROOM (64 << 10) /* of a list, and of a value: the kernel's maximum */
#define NAME_ROOM 256

struct list {
    char names[ROOM];
    size_t len;
};
static struct list lists[2];
static char value[2][ROOM];

struct attr_head {
    uint32_t name_len, value_len; /* name_len 0: the end */
};

static bool is_carried(const char *name)
{
    static const char user[] = "user.";
    return strncmp(name, user, sizeof user - 1) == 0 ||
           strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

/* 0 or errno. The list holds only attributes that are carried. */
static int read_list(int fd, struct list *out)
{
    size_t kept = 0;
    ssize_t len = flistxattr(fd, out->names, sizeof out->names);
    out->len = 0;
    if (len < 0)
        return errno == ENOTSUP ? 0 : errno;
    for (size_t at = 0, size; at < (size_t)len; at += size) {
        size = strlen(out->names + at) + 1;
        if (!is_carried(out->names + at))
            continue;
        memmove(out->names + kept, out->names + at, size);
        kept += size;
    }
    out->len = kept;
    return 0;
}

static const char *next(const struct list *list, size_t *at)
{
    const char *name = list->names + *at;
    if (*at >= list->len)
        return NULL;
    *at += strlen(name) + 1;
    return name;
}

/* Reading values of user.* needs the file's own permissions: they are granted for a moment. */
struct lent {
    int fd;
    mode_t mode;
    bool lends;
};

static struct lent lend(int fd, mode_t need)
{
    struct stat st;
    struct lent lent = { .fd = fd };
    if (fstat(fd, &st) < 0 || (st.st_mode & need) == need)
        return lent;
    lent.mode = st.st_mode & 07777;
    lent.lends = fchmod(fd, lent.mode | need) == 0;
    return lent;
}

static int give_back(const struct lent *lent, int error)
{
    return lent->lends && fchmod(lent->fd, lent->mode) < 0 && !error ? errno : error;
}

static bool same_value(int one, int other, const char *name, ssize_t *out_len)
{
    ssize_t len = fgetxattr(one, name, value[0], ROOM);
    ssize_t there = fgetxattr(other, name, value[1], ROOM);
    *out_len = len;
    return len >= 0 && len == there && memcmp(value[0], value[1], (size_t)len) == 0;
}

bool curator_attrs_same(int one, int other)
{
    if (read_list(one, &lists[0]) || read_list(other, &lists[1]) || lists[0].len != lists[1].len)
        return false;
    if (lists[0].len == 0)
        return true;
    struct lent first = lend(one, 0400), second = lend(other, 0400);
    bool same = true;
    const char *name;
    ssize_t len;
    for (size_t at = 0; same && (name = next(&lists[0], &at));)
        same = same_value(one, other, name, &len);
    return give_back(&second, give_back(&first, 0)) == 0 && same;
}

static int write_all(int from, int to, bool *out_wrote)
{
    const char *name;
    ssize_t len;
    for (size_t at = 0; (name = next(&lists[1], &at));) {
        if (fgetxattr(from, name, NULL, 0) >= 0)
            continue;
        if (fremovexattr(to, name) < 0)
            return errno;
        *out_wrote = true;
    }
    for (size_t at = 0; (name = next(&lists[0], &at));) {
        if (same_value(from, to, name, &len))
            continue;
        if (len < 0 || fsetxattr(to, name, value[0], (size_t)len, 0) < 0)
            return errno;
        *out_wrote = true;
    }
    return 0;
}

int curator_attrs_copy(int from, int to, bool *out_wrote)
{
    int error = read_list(from, &lists[0]);
    if (!error)
        error = read_list(to, &lists[1]);
    if (error || lists[0].len + lists[1].len == 0)
        return error;
    struct lent source = lend(from, 0400), target = lend(to, 0600);
    error = write_all(from, to, out_wrote);
    return give_back(&target, give_back(&source, error));
}

/* --- over a socket --- */

int curator_attrs_send(int from, int to, int (*say)(int to, const void *bytes, size_t len))
{
    const struct attr_head end = { 0, 0 };
    const char *name;
    int error = read_list(from, &lists[0]);
    struct lent lent = { .fd = from };
    if (!error && lists[0].len > 0)
        lent = lend(from, 0400);
    for (size_t at = 0; !error && (name = next(&lists[0], &at));) {
        ssize_t len = fgetxattr(from, name, value[0], ROOM);
        if (len < 0)
            error = errno;
        struct attr_head head = { (uint32_t)strlen(name), len < 0 ? 0 : (uint32_t)len };
        error = error ? error : say(to, &head, sizeof head);
        error = error ? error : say(to, name, head.name_len);
        error = error ? error : say(to, value[0], head.value_len);
    }
    error = give_back(&lent, error);
    return error ? error : say(to, &end, sizeof end);
}

int curator_attrs_receive(int to, int from, int (*hear)(int from, void *bytes, size_t len))
{
    char name[NAME_ROOM];
    for (;;) {
        struct attr_head head;
        int error = hear(from, &head, sizeof head);
        if (error || head.name_len == 0)
            return error;
        if (head.name_len >= sizeof name || head.value_len > ROOM)
            return EBADMSG;
        error = hear(from, name, head.name_len);
        name[head.name_len] = 0;
        error = error ? error : hear(from, value[0], head.value_len);
        if (error)
            return error;
        if (!is_carried(name))
            return EBADMSG;
        if (fsetxattr(to, name, value[0], head.value_len, 0) < 0)
            return errno;
    }
}
