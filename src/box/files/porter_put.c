/* The porter's writing: a file that arrives whole, or in parts that get their name with the last.
 * Runs with the occupant's uid, no capabilities and the porter's filter. Every path is hostile and
 * is resolved beneath the root. No heap. */
#include "box/files/porter_put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/files/tree.h"

#define UPLOADS 4 /* at the same time; one more ends the oldest */

/* Open the directory above a path and make missing ones; *out_name is the last component. Step by
 * step, because mkdirat follows links in the middle of a path. */
static int open_parent(int root, char *path, char **out_name)
{
    own_fd dir = tree_open(root, ".", O_RDONLY | O_DIRECTORY, 0);
    for (char *slash = strchr(path, '/'); dir >= 0 && slash; slash = strchr(path, '/')) {
        *slash = 0;
        bool failed = mkdirat(dir, path, 0755) < 0 && errno != EEXIST;
        int inner = failed ? -1 : tree_open(dir, path, O_RDONLY | O_DIRECTORY, 0);
        own_close_fd(&dir);
        dir = inner;
        path = slash + 1;
    }
    *out_name = path;
    return take_fd(&dir);
}

static int fill(int to, int from, uint64_t left)
{
    static char chunk[65536];
    while (left > 0) {
        ssize_t n = read(from, chunk, left < sizeof chunk ? left : sizeof chunk);
        if (n <= 0 || io_write_all(to, chunk, (size_t)n) < 0)
            return n == 0 ? EIO : errno;
        left -= (uint64_t)n;
    }
    return 0;
}

static bool replaced; /* by the last call */

/* 0, or an errno. */
static int take_place(int dir, const char *fresh, const char *name)
{
    struct stat st;
    replaced = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return renameat(dir, fresh, dir, name) < 0 ? errno : 0;
}

static int put(int root, struct box_porter_call *call, int from)
{
    char fresh[TREE_NAME_ROOM], *name;
    own_fd dir = open_parent(root, call->path, &name);
    if (dir < 0)
        return errno;
    if (call->replace)
        tree_new_name(fresh);
    const char *made = call->replace ? fresh : name;
    own_fd to = tree_open(dir, made, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to < 0)
        return errno;
    if (!call->replace)
        own_close_fd(&dir); /* holds no descriptor longer than needed */
    int why = fill(to, from, call->size);
    if (!why && fchmod(to, call->readonly ? 0444 : 0644) < 0)
        why = errno;
    if (!why && call->replace)
        why = take_place(dir, fresh, name);
    if (why && call->replace)
        unlinkat(dir, fresh, 0);
    return why;
}

/* --- files in parts: they get a name with the last part --- */

static struct upload {
    uint32_t number; /* 0: none */
    int to;
    char path[BOX_PATH_MAX];
} uploads[UPLOADS];

static void abandon(struct upload *upload)
{
    if (upload->number)
        close(upload->to);
    upload->number = 0;
}

void porter_abandon(uint32_t number)
{
    for (size_t i = 0; i < UPLOADS; i++) {
        if (!number || uploads[i].number == number)
            abandon(&uploads[i]);
    }
}

/* A new upload to a path ends an older one: its client is most likely gone. */
static struct upload *begin_upload(int root, const struct box_porter_call *call)
{
    struct upload *upload = &uploads[0];
    for (size_t i = 0; i < UPLOADS; i++) {
        if (strcmp(uploads[i].path, call->path) == 0)
            abandon(&uploads[i]);
        if (uploads[i].number < upload->number)
            upload = &uploads[i];
    }
    abandon(upload);
    upload->to = tree_open(root, ".", O_WRONLY | O_TMPFILE, 0600);
    if (upload->to < 0)
        return NULL;
    upload->number = call->upload;
    memcpy(upload->path, call->path, sizeof upload->path);
    return upload;
}

static struct upload *find_upload(const struct box_porter_call *call)
{
    for (size_t i = 0; i < UPLOADS; i++) {
        if (uploads[i].number == call->upload && strcmp(uploads[i].path, call->path) == 0)
            return &uploads[i];
    }
    errno = ESTALE;
    return NULL;
}

static int give_name(int root, struct box_porter_call *call, int file)
{
    char fresh[TREE_NAME_ROOM], *name;
    tree_new_name(fresh);
    own_fd dir = open_parent(root, call->path, &name);
    if (dir < 0 || fchmod(file, call->readonly ? 0444 : 0644) < 0 ||
        tree_link(file, dir, fresh) < 0)
        return errno;
    int why = take_place(dir, fresh, name);
    if (why)
        unlinkat(dir, fresh, 0);
    return why;
}

static int put_part(int root, struct box_porter_call *call, int from, uint64_t *out_size)
{
    struct upload *upload = call->first ? begin_upload(root, call) : find_upload(call);
    if (!upload)
        return errno;
    int why = fill(upload->to, from, call->size);
    *out_size = (uint64_t)lseek(upload->to, 0, SEEK_CUR);
    if (!why && !call->more)
        why = give_name(root, call, upload->to);
    if (why || !call->more)
        abandon(upload);
    return why;
}

void porter_put(int root, struct box_porter_call *call, int from, struct box_porter_answer *out)
{
    out->size = call->size;
    replaced = false;
    out->error = call->upload ? put_part(root, call, from, &out->size) : put(root, call, from);
    out->changed = replaced;
}
