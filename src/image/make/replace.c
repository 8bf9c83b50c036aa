/* Replacing a package of Python in the tree of the image below: what its record names goes. Runs in
 * the cli process after the drop of rights. Tree and record are outside text. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "image/make/job.h"

#define RECORD_MAX ((size_t)32 << 20)
#define PATH_ROOM 4096

/* `site` and a path of a record, with its leading "../" resolved. With --target pip writes
 * "../../bin/x" for every place of packages; make_pip_add has moved that to usr/local. False for a
 * path that leads out of the tree, or to nothing in it. */
static bool join(const char *site, struct str path, char *out, size_t room)
{
    size_t len = strlen(site), ups = 0;
    for (; path.len >= 3 && memcmp(path.at, "../", 3) == 0; ups++) {
        path = (struct str){ path.at + 3, path.len - 3 };
        while (len > 0 && site[len - 1] != '/')
            len--;
        if (len == 0)
            return false;
        len--; /* the slash */
    }
    if (ups == 2) {
        site = "usr/local";
        len = strlen(site);
    }
    if (path.len == 0 || path.at[0] == '/' || memmem(path.at, path.len, "..", 2) ||
        memchr(path.at, '\0', path.len))
        return false;
    return snprintf(out, room, "%.*s/%.*s", (int)len, site, (int)path.len, path.at) < (int)room;
}

/* "path,hash,size"; a path with a comma is in quotes, and stays. */
static int remove_line(struct make_job *job, struct str line, struct err *err)
{
    char path[PATH_ROOM];
    const char *comma = memchr(line.at, ',', line.len);
    if (!comma || line.at[0] == '"' ||
        !join(job->site, (struct str){ line.at, (size_t)(comma - line.at) }, path, sizeof path))
        return 0;
    return image_build_remove(job->build, str_of(path), err);
}

static int remove_recorded(struct make_job *job, int info, struct err *err)
{
    own_buf text = BUF_INIT(RECORD_MAX);
    own_fd fd = openat(info, "RECORD", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, "open the record of a package");
    if (buf_read(&text, fd) < 0)
        return err_sys(err, "read the record of a package");
    for (struct str rest = buf_str(&text); rest.len > 0;) {
        const char *end = memchr(rest.at, '\n', rest.len);
        struct str line = { rest.at, end ? (size_t)(end - rest.at) : rest.len };
        rest = end ? (struct str){ end + 1, rest.len - line.len - 1 } : STR_NONE;
        line = str_trim(line);
        if (line.len > 0 && remove_line(job, line, err) < 0)
            return -1;
    }
    return 0;
}

/* "Foo_Bar-1.2.dist-info" is of "foo-bar". */
static bool is_info(const char *folder, const char *name)
{
    char plain[MAKE_NAME_ROOM];
    struct str text = str_of(folder);
    const char *dash = strchr(folder, '-');
    return dash && str_ends(text, STR(".dist-info")) &&
           make_name_python((struct str){ folder, (size_t)(dash - folder) }, plain) &&
           strcmp(plain, name) == 0;
}

int make_pip_replace(struct make_job *job, const char *name, struct err *err)
{
    if (job->tree_fd < 0)
        return 0;
    int site = openat(job->tree_fd, job->site, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp dir = site < 0 ? NULL : fdopendir(site);
    if (!dir)
        return errno == ENOENT ? 0 : err_sys(err, "look into the packages of the image below");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[PATH_ROOM];
        if (!is_info(entry->d_name, name))
            continue;
        own_fd info = openat(site, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (info >= 0 && remove_recorded(job, info, err) < 0)
            return -1;
        snprintf(path, sizeof path, "%s/%s", job->site, entry->d_name);
        if (image_build_remove(job->build, str_of(path), err) < 0)
            return -1;
    }
    return 0;
}
