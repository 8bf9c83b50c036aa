/* A build: a folder in work/ whose tree grows entry by entry. All of it is removed unless it is
 * finished; a killed process leaves it to the next sweep (open.c). */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TREE_MTIME 0 /* of folders that no entry named */

static int open_parts(struct image_build *build, struct err *err)
{
    const struct image_store *store = build->store;
    build->lock = openat(store->dirfd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (build->lock < 0 || flock(build->lock, LOCK_SH) < 0)
        return image_store_sys(err, "lock the store of images");
    build->work = image_work_make(store, build->id, err);
    if (build->work < 0)
        return -1;
    build->files = openat(store->dirfd, "files", FOLDER);
    build->tree = image_path_folder(build->work, "tree", 0755);
    build->log = openat(build->work, "log", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
                        0600);
    if (build->files < 0 || build->tree < 0 || build->log < 0)
        return image_store_sys(err, "begin a build in the state folder");
    return 0;
}

int image_build_start(struct image_store *store, const struct image_entry *from,
                      struct image_build **out, struct err *err)
{
    struct image_build *build = buf_alloc_zero(1, sizeof *build);
    *build = (struct image_build){ .store = store, .work = -1, .tree = -1, .files = -1,
                                   .stage = -1, .log = -1, .lock = -1, .from_fd = -1,
                                   .parent_fd = -1, .parent = BUF_INIT(PATH_MAX) };
    build->bytes = buf_alloc(IMAGE_BUILD_BYTES);
    if (open_parts(build, err) < 0 || (from && image_build_copy(build, from, err) < 0)) {
        image_build_close(build);
        return -1;
    }
    *out = build;
    return 0;
}

void image_build_close(struct image_build *build)
{
    if (!build)
        return;
    own_close_fd(&build->parent_fd);
    own_close_fd(&build->stage);
    if (build->work >= 0)
        image_work_remove(build->store, build->id, build->work);
    own_close_fd(&build->tree);
    own_close_fd(&build->files);
    own_close_fd(&build->log);
    own_close_fd(&build->work);
    own_close_fd(&build->from_fd);
    own_close_fd(&build->lock);
    buf_done(&build->parent);
    image_inodes_done(&build->inodes);
    json_decref(build->from);
    free(build->bytes);
    free(build);
}

int image_build_stage(struct image_build *build, int *out_dirfd, struct err *err)
{
    if (build->stage < 0)
        build->stage = image_path_folder(build->work, "stage", 0700);
    if (build->stage < 0)
        return image_store_sys(err, "make a folder for a build in the state folder");
    *out_dirfd = build->stage;
    return 0;
}

/* --- the folder of an entry --- */

static void forget_parent(struct image_build *build)
{
    own_close_fd(&build->parent_fd);
    build->parent.len = 0;
}

static void on_made(void *user, int parent_fd, const char *name)
{
    struct image_build *build = user;
    struct stat st;
    build->entries++;
    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        image_inodes_set(&build->inodes, st.st_ino, NULL, TREE_MTIME);
}

static int refuse_way(struct str path, struct err *err)
{
    char plain[200];
    str_plain(plain, sizeof plain, path);
    if (errno != ELOOP && errno != ENOTDIR)
        return image_store_sys(err, "open the folder of '%s' in an image", plain);
    return err_input(err, "path", plain, "folders alone on the way",
                     "the way to '%s' leads through a link or a file", plain);
}

/* `folder` is "" for the top. */
static int open_folder(struct image_build *build, struct str folder, bool make)
{
    if (build->parent_fd >= 0 && str_eq(buf_str(&build->parent), folder))
        return 0;
    own_fd fd = image_path_open(build->tree, folder, make, on_made, build);
    if (fd < 0)
        return -1;
    forget_parent(build);
    buf_add_str(&build->parent, folder);
    build->parent_fd = take_fd(&fd);
    return 0;
}

static struct str split(struct str path, char out_name[NAME_MAX + 1])
{
    const char *slash = memrchr(path.at, '/', path.len);
    size_t above = slash ? (size_t)(slash - path.at) : 0;
    size_t begin = slash ? above + 1 : 0;
    memcpy(out_name, path.at + begin, path.len - begin);
    out_name[path.len - begin] = 0;
    return (struct str){ path.at, above };
}

int image_build_count(struct image_build *build, struct err *err)
{
    if (++build->entries <= IMAGE_ENTRIES_MAX)
        return 0;
    err_input(err, "path", NULL, "2000000 entries", "the image has more than %d entries",
              IMAGE_ENTRIES_MAX);
    return -1;
}

int image_build_parent(struct image_build *build, struct str path, char out_name[NAME_MAX + 1],
                       struct err *err)
{
    if (image_path_check(path, err) < 0 || image_build_count(build, err) < 0)
        return -1;
    if (open_folder(build, split(path, out_name), /* make= */ true) < 0)
        return refuse_way(path, err);
    return 0;
}

int image_build_clear(struct image_build *build, const char *name, struct err *err)
{
    int64_t gone = image_path_remove(build->parent_fd, name);
    if (gone < 0)
        return image_store_sys(err, "remove '%.200s' from an image", name);
    build->entries -= gone;
    return 0;
}

/* --- entries --- */

int image_build_dir(struct image_build *build, struct str path, int64_t mtime_s, struct err *err)
{
    char name[NAME_MAX + 1];
    struct stat st;
    if (image_build_parent(build, path, name, err) < 0)
        return -1;
    int made = mkdirat(build->parent_fd, name, 0755);
    if (made < 0 && errno == EEXIST &&
        fstatat(build->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(st.st_mode)) {
            build->entries--;
            image_inodes_set(&build->inodes, st.st_ino, NULL, mtime_s);
            return 0;
        }
        if (image_build_clear(build, name, err) < 0)
            return -1;
        made = mkdirat(build->parent_fd, name, 0755);
    }
    if (made < 0 || fchmodat(build->parent_fd, name, 0755, 0) < 0 ||
        fstatat(build->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return image_store_sys(err, "make the folder '%.200s' in an image", name);
    image_inodes_set(&build->inodes, st.st_ino, NULL, mtime_s);
    return 0;
}

int image_build_symlink(struct image_build *build, struct str path, struct str target,
                        struct err *err)
{
    char name[NAME_MAX + 1], text[PATH_MAX], plain[200];
    if (target.len == 0 || target.len >= sizeof text || memchr(target.at, 0, target.len)) {
        str_plain(plain, sizeof plain, path);
        return err_input(err, "path", plain, "1 to 4095 bytes without NUL",
                         "the link '%s' has no acceptable target", plain);
    }
    memcpy(text, target.at, target.len);
    text[target.len] = 0;
    if (image_build_parent(build, path, name, err) < 0)
        return -1;
    int made = symlinkat(text, build->parent_fd, name);
    if (made < 0 && errno == EEXIST) {
        if (image_build_clear(build, name, err) < 0)
            return -1;
        made = symlinkat(text, build->parent_fd, name);
    }
    return made < 0 ? image_store_sys(err, "make the link '%.200s' in an image", name) : 0;
}

/* Nothing there, and nothing on the way: 1. Otherwise the folder is open, or -1. */
static int open_there(struct image_build *build, struct str path, char name[NAME_MAX + 1],
                      struct err *err)
{
    if (image_path_check(path, err) < 0)
        return -1;
    if (open_folder(build, split(path, name), /* make= */ false) == 0)
        return 0;
    return errno == ENOENT ? 1 : refuse_way(path, err);
}

int image_build_remove(struct image_build *build, struct str path, struct err *err)
{
    char name[NAME_MAX + 1];
    int way = open_there(build, path, name, err);
    return way != 0 ? (way < 0 ? -1 : 0) : image_build_clear(build, name, err);
}

int image_build_empty(struct image_build *build, struct str path, struct err *err)
{
    char name[NAME_MAX + 1];
    int way = path.len == 0 ? 0 : open_there(build, path, name, err);
    if (way != 0)
        return way < 0 ? -1 : 0;
    own_fd fd = openat(path.len == 0 ? build->tree : build->parent_fd, path.len == 0 ? "." : name,
                       FOLDER);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? 0
                   : image_store_sys(err, "open a folder of an image");
    forget_parent(build);
    int64_t gone = image_path_empty(fd);
    if (gone < 0)
        return image_store_sys(err, "empty a folder of an image");
    build->entries -= gone;
    return 0;
}
