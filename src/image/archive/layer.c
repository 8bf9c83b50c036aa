/* A tar archive becomes entries of a build. Runs in the cli process. Owners, extended attributes
 * and setuid bits are not looked at: the store keeps none. */
#include "image/archive/layer.h"

#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "image/archive/tarball.h"

#define WHITEOUT ".wh."
#define META ".wh..wh."
#define OPAQUE ".wh..wh..opq"
#define PROGRESS_EACH (INT64_C(4) << 20) /* bytes between two calls of progress */

struct layer {
    const struct layer_job *job;
    struct unpack *unpack;
    struct tarball *tarball;
    enum layer_form form;
    int64_t bytes_max, bytes, told; /* bytes: of this layer's files */
    bool has_root;                  /* something that a root file system has */
};

static void tell(struct layer *layer)
{
    const struct image_import_options *options = layer->job->options;
    if (options->progress)
        options->progress(options->user, layer->job->report->bytes, layer->job->report->entries);
    layer->told = layer->job->report->bytes;
}

static int64_t on_read(void *user, void *buffer, size_t room, struct err *err)
{
    struct layer *layer = user;
    int64_t n = tarball_read(layer->tarball, buffer, room, err);
    if (n <= 0)
        return n;
    layer->bytes += n;
    layer->job->report->bytes += n;
    /* A sparse file is large without bytes in the archive. */
    if (layer->bytes - UNPACK_FREE > unpack_packed_bytes(layer->unpack) * UNPACK_RATIO)
        return err_input(err, "image", NULL, "a ratio of at most 200",
                         "the archive is a bomb: its files are more than %lld bytes",
                         (long long)layer->bytes);
    if (layer->job->report->bytes - layer->told >= PROGRESS_EACH)
        tell(layer);
    return n;
}

static int put_file(struct layer *layer, const struct tarball_entry *entry, struct err *err)
{
    if (entry->size > layer->bytes_max - layer->job->report->bytes) {
        tarball_refuse(err, entry->path, "makes the image larger than %lld bytes",
                       (long long)layer->bytes_max);
        err_hint(err, "--max-size raises the limit, for an image that you trust");
        return -1;
    }
    return image_build_file(layer->job->build, entry->path, entry->mode, entry->mtime_s, on_read,
                            layer, err);
}

static int put_hardlink(struct layer *layer, const struct tarball_entry *entry,
                        const struct paths_at *to, struct str target, struct err *err)
{
    switch (to->kind) {
    case PATHS_FILE: return image_build_link(layer->job->build, entry->path, entry->link, err);
    case PATHS_LINK: return image_build_symlink(layer->job->build, entry->path, target, err);
    case PATHS_DIR: return tarball_refuse(err, entry->path, "is a hard link to a folder");
    case PATHS_NONE:
    case PATHS_SKIPPED: break;
    }
    return tarball_refuse(err, entry->path, "is a hard link to a file that is not there");
}

static enum paths_kind kind_of(const struct tarball_entry *entry, const struct paths_at *to)
{
    switch (entry->kind) {
    case TARBALL_FILE: return PATHS_FILE;
    case TARBALL_DIR: return PATHS_DIR;
    case TARBALL_SYMLINK: return PATHS_LINK;
    case TARBALL_HARDLINK: return to->kind == PATHS_NONE ? PATHS_FILE : to->kind;
    case TARBALL_OTHER: break;
    }
    return PATHS_SKIPPED;
}

/* May this entry stand where `old` is? Within one layer, a path keeps its kind: an entry that turns
 * a folder into a link, or a link into another one, wants others to be written through it. */
static int check_twice(const struct layer *layer, const struct tarball_entry *entry,
                       enum paths_kind kind, struct str target, const struct paths_at *old,
                       struct err *err)
{
    if (old->kind == PATHS_NONE || old->layer != paths_layer(layer->job->paths))
        return 0;
    if (old->kind != kind || (kind == PATHS_LINK && !str_eq(old->target, target)))
        return tarball_refuse(err, entry->path, "stands there twice, as two different things");
    return 0;
}

static int write_entry(struct layer *layer, const struct tarball_entry *entry,
                       const struct paths_at *to, enum paths_kind kind, struct str target,
                       struct err *err)
{
    struct image_build *build = layer->job->build;
    if (kind == PATHS_SKIPPED) {
        layer->job->report->skipped++;
        return image_build_remove(build, entry->path, err);
    }
    switch (entry->kind) {
    case TARBALL_DIR: return image_build_dir(build, entry->path, entry->mtime_s, err);
    case TARBALL_FILE: return put_file(layer, entry, err);
    case TARBALL_SYMLINK: return image_build_symlink(build, entry->path, target, err);
    case TARBALL_HARDLINK: return put_hardlink(layer, entry, to, target, err);
    case TARBALL_OTHER: break;
    }
    return err_set(err, ERR_BUG, "an entry of the archive has no kind");
}

static int put(struct layer *layer, const struct tarball_entry *entry, struct err *err)
{
    struct paths *paths = layer->job->paths;
    struct paths_at old, to = { .kind = PATHS_NONE };
    if (entry->kind == TARBALL_HARDLINK && str_eq(entry->path, entry->link))
        return 0; /* tar writes one for a file that it was given twice */
    if (entry->kind == TARBALL_HARDLINK &&
        paths_find(paths, entry->link, /* make= */ false, &to, err) < 0)
        return -1;
    own_str target = buf_strdup(to.kind == PATHS_LINK ? to.target : entry->link);
    enum paths_kind kind = kind_of(entry, &to);
    if (paths_find(paths, entry->path, /* make= */ true, &old, err) < 0 ||
        check_twice(layer, entry, kind, str_of(target), &old, err) < 0)
        return -1;
    if (old.kind != PATHS_NONE && old.kind != kind &&
        image_build_remove(layer->job->build, entry->path, err) < 0)
        return -1;
    if (write_entry(layer, entry, &to, kind, str_of(target), err) < 0)
        return -1;
    return paths_put(paths, entry->path, kind, str_of(target), err);
}

static int remove_lower(void *user, struct str path, struct err *err)
{
    struct layer *layer = user;
    return image_build_remove(layer->job->build, path, err);
}

static int white_out(struct layer *layer, const struct tarball_entry *entry, struct str folder,
                     struct str name, struct err *err)
{
    struct paths *paths = layer->job->paths;
    struct paths_at old;
    char path[TARBALL_PATH_MAX + 1];
    if (name.len == 0 || str_is(name, ".") || str_is(name, ".."))
        return tarball_refuse(err, entry->path, "is a whiteout of no name");
    snprintf(path, sizeof path, "%.*s%s%.*s", (int)folder.len, folder.at, folder.len ? "/" : "",
             (int)name.len, name.at);
    if (paths_find(paths, str_of(path), /* make= */ false, &old, err) < 0)
        return -1;
    if (old.kind == PATHS_NONE)
        return 0;
    if (old.layer == paths_layer(paths))
        return tarball_refuse(err, entry->path, "removes what the same layer adds");
    paths_remove(paths, str_of(path));
    return image_build_remove(layer->job->build, str_of(path), err);
}

/* Does one of the names in this path begin with this? The last one does not count. */
static bool has_folder_like(struct str path, const char *start)
{
    size_t len = strlen(start);
    for (const char *at = path.at; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (strncmp(at, start, len) == 0 && strchr(at, '/'))
            return true;
    return false;
}

/* 1: the entry was a whiteout, and is done. */
static int try_whiteout(struct layer *layer, const struct tarball_entry *entry, struct err *err)
{
    const char *slash = memrchr(entry->path.at, '/', entry->path.len);
    struct str name = slash ? str_of(slash + 1) : entry->path;
    struct str folder = { entry->path.at, slash ? (size_t)(slash - entry->path.at) : 0 };
    bool white = strncmp(name.at, WHITEOUT, strlen(WHITEOUT)) == 0;
    if (!white && !has_folder_like(entry->path, WHITEOUT))
        return 0;
    if (layer->form == LAYER_ROOT)
        return tarball_refuse(err, entry->path,
                              "begins with '" WHITEOUT "', as whiteouts of layers do");
    /* Notes of aufs, and what is in their folders. */
    if (has_folder_like(entry->path, META) ||
        (strncmp(name.at, META, strlen(META)) == 0 && !str_is(name, OPAQUE))) {
        layer->job->report->skipped++;
        return 1;
    }
    if (has_folder_like(entry->path, WHITEOUT))
        return tarball_refuse(err, entry->path, "is below a whiteout");
    int rc;
    if (str_is(name, OPAQUE)) {
        rc = paths_opaque(layer->job->paths, folder, remove_lower, layer, err);
    } else {
        name.at += strlen(WHITEOUT);
        name.len -= strlen(WHITEOUT);
        rc = white_out(layer, entry, folder, name, err);
    }
    return rc < 0 ? -1 : 1;
}

static void note_root(struct layer *layer, struct str path)
{
    static const char *const names[] = { "bin", "etc", "lib", "sbin", "usr" };
    for (size_t i = 0; i < array_len(names); i++) {
        size_t len = strlen(names[i]);
        if (path.len >= len && memcmp(path.at, names[i], len) == 0 &&
            (path.len == len || path.at[len] == '/'))
            layer->has_root = true;
    }
}

static int take(struct layer *layer, const struct tarball_entry *entry, struct err *err)
{
    struct image_import_report *report = layer->job->report;
    if (++report->entries > IMAGE_ENTRIES_MAX)
        return tarball_refuse(err, entry->path, "is one entry too many: an image has at most %d",
                              IMAGE_ENTRIES_MAX);
    if (report->entries % 1024 == 0)
        tell(layer);
    if (entry->path.len == 0) {
        if (entry->kind == TARBALL_DIR)
            return 0;
        return err_input(err, "image", NULL, NULL, "the root of the archive is no folder");
    }
    int rc = try_whiteout(layer, entry, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    note_root(layer, entry->path);
    return put(layer, entry, err);
}

static int take_all(struct layer *layer, struct err *err)
{
    struct tarball_entry entry;
    int rc;
    while ((rc = tarball_next(layer->tarball, &entry, err)) > 0)
        if (take(layer, &entry, err) < 0)
            return -1;
    if (rc < 0)
        return -1;
    if (layer->form == LAYER_ROOT && !layer->has_root) {
        err_input(err, "image", NULL, NULL,
                  "the archive is no root file system: it has neither bin, etc, lib, sbin nor usr");
        err_hint(err, "make the archive inside the root: tar -C ROOT -c .");
        return -1;
    }
    return 0;
}

int layer_apply(const struct layer_job *job, const struct unpack_source *source,
                enum layer_form form, struct unpack_sums *out, struct err *err)
{
    int64_t max = job->options->bytes_max > 0 ? job->options->bytes_max : IMAGE_IMPORT_BYTES_MAX;
    own_unpack unpack = NULL;
    own_tarball tarball = NULL;
    struct layer layer = { .job = job, .form = form, .bytes_max = max,
                           .told = job->report->bytes };
    if (unpack_open(source, max, &unpack, err) < 0 || tarball_open(unpack, &tarball, err) < 0)
        return -1;
    layer.unpack = unpack;
    layer.tarball = tarball;
    paths_next_layer(job->paths);
    if (take_all(&layer, err) < 0 || unpack_finish(unpack, out, err) < 0)
        return -1;
    job->report->layers++;
    tell(&layer);
    return 0;
}
