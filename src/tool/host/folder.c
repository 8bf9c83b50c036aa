/* Reads tool files. A file decides which program runs as the caller: it must be a regular file that
 * no other user can write, in a folder that no other user can write. Runs in the tool host's
 * process; the catalog lets one thread in at a time. */
#include "tool/host/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/command.h"
#include "tool/host/http_tool.h"
#include "tool/host/mcp_source.h"
#include "tool/host/openapi_source.h"
#include "tool/host/owned.h"

/* One row is one kind of tool file. */
static const struct source_kind kinds[] = {
    { "command", command_open },
    { "http", http_source_open },
    { "openapi", openapi_source_open },
    { "mcpServers", mcp_source_open },
};

#define YOUNG_NS (100 * CLOCK_MS) /* more than a tick: before Linux 6.13 file times are ticks */

/* Changes with every change of a file, but for two changes within a tick. */
struct stamp {
    ino_t inode;
    off_t size;
    int64_t changed_ns;
};

struct known {
    char *name;
    struct stamp stamp;
};

/* A slow source stays as it is while its file's text and the secrets do: another file's change ends
 * no server. */
struct kept {
    char *path;
    json_t *text;
    struct live *live;
};

struct folder {
    char *path, *mcp_path, *secrets_path;
    struct stamp stamp, mcp_stamp, secrets_stamp;
    struct known *files;
    struct live **lives;
    size_t files_count, lives_count;
    struct kept *kept, *before; /* before: of the last reading, while another one runs */
    size_t kept_count, before_count;
    struct secrets *secrets;
    json_t *faults;
    int64_t read_ns; /* clock of files; 0: not read yet */
};

/* All zero where there is no file. */
static struct stamp stamp_of(int dir, const char *name)
{
    struct stat info;
    if (!name || fstatat(dir, name, &info, 0) < 0)
        return (struct stamp){ 0 };
    return (struct stamp){ info.st_ino, info.st_size, clock_ns(info.st_ctim) };
}

/* A file that changed just before it was read may have changed again with the same stamp: it is
 * read once more. */
static bool is_same(const struct folder *folder, struct stamp a, struct stamp b)
{
    return a.changed_ns < folder->read_ns - YOUNG_NS && a.inode == b.inode && a.size == b.size &&
           a.changed_ns == b.changed_ns;
}

/* Programs start in other folders, so a relative path would lead elsewhere. */
static char *absolute(const char *path)
{
    own_str here = path && *path != '/' ? getcwd(NULL, 0) : NULL;
    own_buf whole = BUF_INIT(16384);
    if (!path)
        return NULL;
    if (here && buf_printf(&whole, "%s/%s", here, path) == 0)
        return buf_take(&whole);
    return buf_strdup(str_of(path));
}

struct folder *folder_new(const char *path, const char *mcp_path, const char *secrets_path)
{
    struct folder *folder = buf_alloc_zero(1, sizeof *folder);
    struct err err = ERR_INIT;
    folder->path = absolute(path);
    folder->mcp_path = absolute(mcp_path);
    folder->secrets_path = absolute(secrets_path);
    folder->secrets = secrets_read(NULL, &err);
    folder->faults = json_array();
    return folder;
}

bool folder_has_changed(const struct folder *folder)
{
    if (!folder->read_ns || !is_same(folder, folder->stamp, stamp_of(AT_FDCWD, folder->path)) ||
        !is_same(folder, folder->mcp_stamp, stamp_of(AT_FDCWD, folder->mcp_path)) ||
        !is_same(folder, folder->secrets_stamp, stamp_of(AT_FDCWD, folder->secrets_path)))
        return true;
    own_fd dir = folder->path ? open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    for (size_t i = 0; i < folder->files_count; i++)
        if (!is_same(folder, folder->files[i].stamp, stamp_of(dir, folder->files[i].name)))
            return true;
    return false;
}

static void forget(struct folder *folder)
{
    for (size_t i = 0; i < folder->files_count; i++)
        free(folder->files[i].name);
    for (size_t i = 0; i < folder->lives_count; i++)
        live_unref(folder->lives[i]);
    free(folder->files);
    free(folder->lives);
    folder->files = NULL;
    folder->lives = NULL;
    folder->files_count = folder->lives_count = 0;
    json_decref(folder->faults);
    folder->faults = json_array();
}

static json_t *read_json(int dir, const char *name, struct err *err)
{
    own_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    own_buf text = BUF_INIT(FOLDER_FILE_BYTES_MAX);
    if (fd < 0 && errno == ELOOP) {
        err_set(err, ERR_INPUT, "it is a symbolic link");
        err_hint(err, "copy the file into the folder");
        return NULL;
    }
    if (fd < 0) {
        err_sys(err, "open it");
        return NULL;
    }
    if (owned_check(fd, OWNED_FILE, err) < 0)
        return NULL;
    if (buf_read(&text, fd) < 0) {
        if (errno == EFBIG)
            err_set(err, ERR_LIMIT, "it has more than %zu bytes", FOLDER_FILE_BYTES_MAX);
        else
            err_sys(err, "read it");
        return NULL;
    }
    return json_read(buf_str(&text), FOLDER_FILE_BYTES_MAX, err);
}

static const struct source_kind *kind_of(const json_t *file, struct err *err)
{
    const struct source_kind *found = NULL;
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (!json_object_get(file, kinds[i].member))
            continue;
        if (found) {
            err_input(err, kinds[i].member, NULL, "one of them",
                      "it has both '%s' and '%s', but a tool has one kind", found->member,
                      kinds[i].member);
            return NULL;
        }
        found = &kinds[i];
    }
    if (found)
        return found;
    own_buf names = BUF_INIT(128);
    for (size_t i = 0; i < array_len(kinds); i++)
        buf_printf(&names, "%s'%s'", i ? " or " : "", kinds[i].member);
    err_input(err, kinds[0].member, NULL, names.at, "it has no field %s", names.at);
    return NULL;
}

static struct live *kept_live(const struct folder *folder, const char *path, const json_t *text)
{
    for (size_t i = 0; i < folder->before_count; i++)
        if (strcmp(folder->before[i].path, path) == 0 && json_equal(folder->before[i].text, text))
            return live_ref(folder->before[i].live);
    return NULL;
}

static void keep_live(struct folder *folder, const char *path, json_t *text, struct live *live)
{
    folder->kept = buf_list_room(folder->kept, folder->kept_count, sizeof *folder->kept);
    folder->kept[folder->kept_count++] = (struct kept){ buf_strdup(str_of(path)), json_incref(text),
                                                        live_ref(live) };
}

static void drop_kept(struct kept *kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(kept[i].path);
        json_decref(kept[i].text);
        live_unref(kept[i].live);
    }
    free(kept);
}

static int read_file(struct folder *folder, int dir, const char *name, const char *path,
                     struct err *err)
{
    struct source source = { .ops = NULL };
    own_json file = read_json(dir, name, err);
    if (!file)
        return -1;
    if (!json_is_object(file))
        return err_input(err, "", NULL, "a JSON object", "it does not hold a JSON object");
    const struct source_kind *kind = kind_of(file, err);
    struct source_from from = { path, dir, folder->path, folder->secrets };
    struct live *live = kept_live(folder, path, file);
    if (!live) {
        if (!kind || kind->open(file, &from, &source, err) < 0)
            return -1;
        live = live_new(&source, path, folder->secrets);
    }
    folder->lives = buf_list_room(folder->lives, folder->lives_count, sizeof *folder->lives);
    folder->lives[folder->lives_count++] = live;
    if (live->source.ops->is_slow)
        keep_live(folder, path, file, live);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct known *)a)->name, ((const struct known *)b)->name);
}

/* The names of the tool files, sorted, with their stamps. */
static void find_files(struct folder *folder, int dir)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp names = again < 0 ? NULL : fdopendir(again);
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        struct str name = str_of(entry->d_name);
        if (name.at[0] == '.' || !str_ends(name, STR(".json")))
            continue;
        folder->files = buf_list_room(folder->files, folder->files_count, sizeof *folder->files);
        folder->files[folder->files_count++] = (struct known){ buf_strdup(name),
                                                               stamp_of(dir, name.at) };
    }
    if (folder->files_count)
        qsort(folder->files, folder->files_count, sizeof *folder->files, by_name);
}

static void read_files(struct folder *folder, int dir)
{
    struct err err = ERR_INIT;
    find_files(folder, dir);
    if (folder->files_count > FOLDER_FILES_MAX) {
        err_set(&err, ERR_LIMIT, "it has %zu tool files; the maximum is %d", folder->files_count,
                FOLDER_FILES_MAX);
        live_fault(folder->faults, folder->path, NULL, &err);
    }
    for (size_t i = 0; i < folder->files_count && i < FOLDER_FILES_MAX; i++) {
        own_buf path = BUF_INIT(16384);
        const char *name = folder->files[i].name;
        err = ERR_INIT;
        if (buf_printf(&path, "%s/%s", folder->path, name) < 0)
            err_set(&err, ERR_LIMIT, "its path is too long");
        if (!path.at || read_file(folder, dir, name, path.at, &err) < 0)
            live_fault(folder->faults, path.at ? path.at : name, NULL, &err);
    }
}

static void read_all(struct folder *folder)
{
    struct err err = ERR_INIT;
    struct timespec now;
    forget(folder);
    clock_gettime(CLOCK_REALTIME, &now);
    folder->read_ns = clock_ns(now);
    /* The stamps come first: a change during the reading is then seen as one. */
    folder->stamp = stamp_of(AT_FDCWD, folder->path);
    folder->mcp_stamp = stamp_of(AT_FDCWD, folder->mcp_path);
    folder->secrets_stamp = stamp_of(AT_FDCWD, folder->secrets_path);
    struct secrets *secrets = secrets_read(folder->secrets_path, &err);
    if (!secrets) {
        live_fault(folder->faults, NULL, NULL, &err);
        secrets = secrets_read(NULL, &err);
    }
    secrets_unref(folder->secrets);
    folder->secrets = secrets;
    err = ERR_INIT;
    if (folder->mcp_path &&
        read_file(folder, AT_FDCWD, folder->mcp_path, folder->mcp_path, &err) < 0)
        live_fault(folder->faults, folder->mcp_path, NULL, &err);
    if (!folder->path)
        return;
    own_fd dir = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT)
        return;
    err = ERR_INIT;
    if (dir < 0)
        err_sys(&err, "open it");
    if (dir < 0 || owned_check(dir, OWNED_FOLDER, &err) < 0)
        live_fault(folder->faults, folder->path, NULL, &err);
    else
        read_files(folder, dir);
}

void folder_read(struct folder *folder)
{
    bool same = folder->read_ns &&
                is_same(folder, folder->secrets_stamp, stamp_of(AT_FDCWD, folder->secrets_path));
    struct kept *before = take_ptr(folder->kept);
    size_t count = folder->kept_count;
    folder->kept_count = 0;
    folder->before = before;
    folder->before_count = same ? count : 0;
    read_all(folder);
    folder->before = NULL;
    folder->before_count = 0;
    drop_kept(before, count);
}

size_t folder_count(const struct folder *folder)
{
    return folder->lives_count;
}

struct live *folder_at(const struct folder *folder, size_t i)
{
    return folder->lives[i];
}

const json_t *folder_faults(const struct folder *folder)
{
    return folder->faults;
}

struct secrets *folder_secrets(const struct folder *folder)
{
    return folder->secrets;
}
