/* The walk: one folder after another from a list of those still to visit. It opens each by its
 * whole path beneath the root, so that a folder that is moved meanwhile is at worst missed by name
 * and never followed out. Entries cost no stat: getdents tells their type. */
#include "folder/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

#define LOOKS 1024 /* entries between two looks at the clock */
#define READ_ROOM (1u << 16)

struct walk {
    int root;
    const struct ignore *ignore; /* NULL: every entry is listed */
    struct buf *out;
    struct walk_facts *facts;
    char **waiting; /* folders still to visit */
    size_t count;
    int64_t until_ns;
    char path[WALK_PATH_ROOM];
    size_t len; /* of the current folder's path, with its slash; 0 for the root */
};

int walk_open(int dir, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static int refuse_size(const char *what, struct err *err)
{
    err_set(err, ERR_LIMIT, "the folder %s", what);
    err_hint(err, "name a smaller folder, the project itself; secrets are searched before the code "
                  "sees anything");
    return -1;
}

static int add_mask(struct walk *walk, enum walk_kind kind, size_t len, struct err *err)
{
    char head = (char)kind;
    uint32_t *count = kind == WALK_KEEP ? &walk->facts->kept : &walk->facts->hidden;
    (*count)++;
    if (walk->facts->hidden + walk->facts->kept > WALK_MASKS_MAX ||
        buf_add(walk->out, &head, 1) < 0 || buf_add(walk->out, walk->path, len) < 0 ||
        buf_add(walk->out, "", 1) < 0) {
        err_set(err, ERR_LIMIT, "the folder has more than %u entries to hide", WALK_MASKS_MAX);
        err_hint(err, "hide the folder around them with a line in " IGNORE_FILE);
        return -1;
    }
    return 0;
}

static int add_entry(struct walk *walk, size_t len, struct err *err)
{
    if (buf_add(walk->out, "e", 1) < 0 || buf_add(walk->out, walk->path, len) < 0 ||
        buf_add(walk->out, "", 1) < 0)
        return refuse_size("has too many entries to list", err);
    return 0;
}

/* Only hidden files are worth a stat: another name of one shows its content. */
static void look_for_links(struct walk *walk, int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1)
        walk->facts->linked++;
}

static unsigned char type_of(int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return DT_UNKNOWN;
    return S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
}

static int visit_later(struct walk *walk, size_t len)
{
    walk->waiting = buf_list_room(walk->waiting, walk->count, sizeof *walk->waiting);
    walk->waiting[walk->count++] = buf_strdup((struct str){ walk->path, len });
    return 0;
}

static int meet(struct walk *walk, int dir, const char *name, unsigned char type, struct err *err)
{
    size_t name_len = strlen(name), len = walk->len + name_len;
    if (len + 2 > sizeof walk->path)
        return refuse_size("is nested too deeply: a path has more than 4,094 bytes", err);
    memcpy(walk->path + walk->len, name, name_len + 1);
    struct str path = { walk->path, len };
    if (type == DT_UNKNOWN)
        type = type_of(dir, name);
    bool is_dir = type == DT_DIR;
    if (!walk->ignore)
        return add_entry(walk, len, err) < 0 ? -1 : is_dir ? visit_later(walk, len) : 0;
    if (ignore_hides(walk->ignore, path, is_dir)) {
        if (!is_dir)
            look_for_links(walk, dir, name);
        return add_mask(walk, WALK_HIDE, len, err);
    }
    /* The root's own is always protected; one further down that is no folder is as well. */
    if (ignore_is_kept(path) && add_mask(walk, WALK_KEEP, len, err) < 0)
        return -1;
    return is_dir ? visit_later(walk, len) : 0;
}

static int check_bounds(struct walk *walk, struct err *err)
{
    if (walk->facts->entries > WALK_ENTRIES_MAX)
        return refuse_size("has more than 2,000,000 entries", err);
    if (walk->facts->entries % LOOKS == 0 && clock_now_ns() > walk->until_ns)
        return refuse_size("takes more than a minute to look through", err);
    return 0;
}

static int read_names(struct walk *walk, int dir, struct err *err)
{
    static union {
        char bytes[READ_ROOM];
        uint64_t align;
    } room;
    for (;;) {
        long n = syscall(SYS_getdents64, dir, room.bytes, sizeof room.bytes);
        if (n < 0)
            return err_sys(err, "read the folder '%.200s'", walk->path);
        if (n == 0)
            return 0;
        for (long at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(room.bytes + at);
            const char *name = entry->d_name;
            at += entry->d_reclen;
            if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                continue;
            walk->facts->entries++;
            if (check_bounds(walk, err) < 0 || meet(walk, dir, name, entry->d_type, err) < 0)
                return -1;
        }
    }
}

/* A folder that cannot be looked into, or is another mount, is hidden as a whole. */
static int visit(struct walk *walk, const char *path, struct err *err)
{
    size_t len = strlen(path);
    own_fd dir = walk_open(walk->root, len > 0 ? path : ".", O_RDONLY | O_DIRECTORY);
    memcpy(walk->path, path, len + 1);
    if (dir < 0 && len > 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0; /* it went away while we looked */
    if (dir < 0 && !walk->ignore)
        return err_sys(err, "read the folder '%.200s'", path);
    if (dir < 0 && len > 0)
        return add_mask(walk, WALK_HIDE, len, err);
    if (dir < 0)
        return err_sys(err, "read the folder");
    walk->len = len;
    if (len > 0)
        walk->path[walk->len++] = '/';
    return read_names(walk, dir, err);
}

static int run(struct walk *walk, struct err *err)
{
    int rc = 0;
    walk->until_ns = clock_now_ns() + WALK_TIME_MS * CLOCK_MS;
    while (rc == 0 && walk->count > 0) {
        own_str path = walk->waiting[--walk->count];
        rc = visit(walk, path, err);
    }
    while (walk->count > 0)
        free(walk->waiting[--walk->count]);
    free(walk->waiting);
    return rc;
}

int walk_masks(int dir, const struct ignore *ignore, struct buf *out, struct walk_facts *facts,
               struct err *err)
{
    static struct walk walk;
    *facts = (struct walk_facts){ 0 };
    walk = (struct walk){ .root = dir, .ignore = ignore, .out = out, .facts = facts };
    visit_later(&walk, 0);
    return run(&walk, err);
}

int walk_below(int dir, struct str path, struct buf *out, struct err *err)
{
    static struct walk walk;
    struct walk_facts facts = { 0 };
    walk = (struct walk){ .root = dir, .out = out, .facts = &facts };
    if (path.len + 2 > sizeof walk.path)
        return refuse_size("is nested too deeply", err);
    memcpy(walk.path, path.at, path.len);
    visit_later(&walk, path.len);
    return run(&walk, err);
}

int walk_next(struct str *list, struct str *out_path)
{
    const char *end = list->len > 2 ? memchr(list->at + 1, 0, list->len - 1) : NULL;
    if (!end)
        return 0;
    int kind = list->at[0];
    *out_path = (struct str){ list->at + 1, (size_t)(end - list->at) - 1 };
    *list = (struct str){ end + 1, list->len - (size_t)(end + 1 - list->at) };
    return kind;
}
