/* Command lines and small files of builds. Runs in the cli process after the drop of rights. Pip,
 * npm or apt wrote the files of the stage: no link there is followed. */
#include "image/make/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/own.h"

#define DEPTH_MAX 64

void make_words_add(struct make_words *words, const char *word)
{
    if (words->count < MAKE_WORDS_MAX)
        words->at[words->count++] = word;
}

struct make_words make_words_from(const char *const *list)
{
    struct make_words words = { .count = 0 };
    for (; *list; list++)
        make_words_add(&words, *list);
    return words;
}

size_t make_job_count(const struct make_job *job, enum make_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < job->wants->count; i++)
        count += job->wants->at[i].kind == kind;
    return count;
}

void make_job_step(const struct make_job *job, const char *what)
{
    if (job->step)
        job->step(job->user, what);
}

int make_stage_folder(const struct make_job *job, const char *path, struct err *err)
{
    if (mkdirat(job->scene->stage_fd, path, 0700) < 0 && errno != EEXIST)
        return err_sys(err, "make folder '%s' of the build", path);
    return 0;
}

int make_stage_write(const struct make_job *job, const char *path, struct str text, struct err *err)
{
    own_fd fd = openat(job->scene->stage_fd, path,
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || io_write_all(fd, text.at, text.len) < 0)
        return err_sys(err, "write '%s' of the build", path);
    return 0;
}

int make_stage_read(const struct make_job *job, const char *path, size_t most, struct buf *out,
                    struct err *err)
{
    struct stat info;
    own_fd fd = openat(job->scene->stage_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *out = BUF_INIT(most);
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return err_sys(err, "open '%s' of the build", path);
    if (buf_read(out, fd) < 0)
        return errno == EFBIG ? err_set(err, ERR_LIMIT, "'%s' of the build has more than %zu bytes",
                                        path, most)
                              : err_sys(err, "read '%s' of the build", path);
    return 0;
}

int make_stage_open(const struct make_job *job, const char *path, struct err *err)
{
    int fd = openat(job->scene->stage_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? err_sys(err, "open folder '%s' of the build", path) : fd;
}

int make_stage_take(const struct make_job *job, const char *path, const char *at, struct err *err)
{
    struct stat info;
    if (fstatat(job->scene->stage_fd, path, &info, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    own_fd fd = make_stage_open(job, path, err);
    return fd < 0 ? -1 : image_build_take(job->build, fd, str_of(at), MAKE_MTIME_S, err);
}

int make_stage_hash(int dirfd, const char *name, char out[HASH_HEX_ROOM], struct err *err)
{
    struct hash hash;
    char bytes[65536];
    ssize_t n;
    own_fd fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "open '%.200s' of the build", name);
    hash_start(&hash);
    while ((n = read(fd, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read '%.200s' of the build", name);
        hash_add(&hash, bytes, (size_t)n);
    }
    hash_end_hex(&hash, out);
    return 0;
}

static int remove_below(int dirfd, const char *name, int depth)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if ((errno != EISDIR && errno != EPERM) || depth == DEPTH_MAX)
        return -1;
    int own = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_dirp dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (remove_below(own, entry->d_name, depth + 1) < 0)
            return -1;
    }
    return unlinkat(dirfd, name, AT_REMOVEDIR);
}

int make_stage_remove(int dirfd, const char *name)
{
    return remove_below(dirfd, name, 0);
}
