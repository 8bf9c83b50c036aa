/* The end of a build. The tree is walked once: its list, its digest, its sums. Then, in this order,
 * so that no moment shows half an image: the data reaches the disk, the tree gets its place, then
 * the list, the manifest, and at last the name. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"

#define LIST_CHUNK (256u << 10)
#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct tally {
    struct image_build *build;
    struct hash digest, list_hash;
    struct buf text; /* of the list, not yet written */
    int list;
    int64_t files, bytes;
    char hex[IMAGE_HEX_ROOM], list_hex[IMAGE_HEX_ROOM];
};

static void tally_done(struct tally *tally)
{
    buf_done(&tally->text);
    own_close_fd(&tally->list);
}

static int write_list(struct tally *tally, struct err *err)
{
    hash_add(&tally->list_hash, tally->text.at ? tally->text.at : "", tally->text.len);
    if (io_write_all(tally->list, tally->text.at, tally->text.len) < 0)
        return image_store_sys(err, "write the list of an image");
    tally->text.len = 0;
    return 0;
}

static int see(void *user, int parent_fd, const char *name, const struct stat *st, struct str path,
               struct err *err)
{
    struct tally *tally = user;
    char target[PATH_MAX];
    struct image_item item;
    if (image_walk_item(parent_fd, name, st, path, target, &item, err) < 0)
        return -1;
    const struct image_inode *known = image_inodes_find(&tally->build->inodes, st->st_ino);
    if (item.kind == IMAGE_FILE) {
        if (known)
            image_hex_write(known->hash, item.hash);
        else if (image_walk_hash(parent_fd, name, path, item.hash, err) < 0)
            return -1;
        tally->files++;
        tally->bytes += item.size;
    } else if (item.kind == IMAGE_DIR) {
        item.mtime_s = known ? known->mtime_s : 0;
    }
    image_item_hash(&item, &tally->digest);
    image_item_write(&item, &tally->text);
    return tally->text.len >= LIST_CHUNK ? write_list(tally, err) : 0;
}

/* A new entry changes the time of its folder, so the time is set at the end. */
static int left(void *user, int dirfd, const struct stat *st, struct err *err)
{
    const struct tally *tally = user;
    const struct image_inode *known = image_inodes_find(&tally->build->inodes, st->st_ino);
    const struct timespec at = { .tv_sec = known ? known->mtime_s : 0 };
    return futimens(dirfd, (struct timespec[]){ at, at }) < 0
               ? image_store_sys(err, "set the time of a folder in an image")
               : 0;
}

static void add_env(const json_t *env, struct hash *digest)
{
    own_str text = json_is_object(env) && json_object_size(env) > 0
                       ? json_write(env, JSON_COMPACT | JSON_SORT_KEYS)
                       : NULL;
    if (text)
        hash_add(digest, text, strlen(text) + 1);
}

/* Base and environment are part of what runs see, so they are part of the digest. */
static int tally_up(struct tally *tally, const json_t *env, struct err *err)
{
    const struct image_walk walk = { .see = see, .left = left, .user = tally };
    struct image_build *build = tally->build;
    tally->list = openat(build->work, "list", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (tally->list < 0)
        return image_store_sys(err, "write the list of an image");
    hash_start(&tally->digest);
    hash_start(&tally->list_hash);
    hash_add(&tally->digest, build->on_host ? "host" : "none", 5);
    add_env(env, &tally->digest);
    if (image_walk(build->tree, &walk, err) < 0 || write_list(tally, err) < 0)
        return -1;
    const struct timespec zero = { 0 };
    if (fchmod(build->tree, 0755) < 0 ||
        futimens(build->tree, (struct timespec[]){ zero, zero }) < 0)
        return image_store_sys(err, "set the time of an image");
    hash_end_hex(&tally->digest, tally->hex);
    hash_end_hex(&tally->list_hash, tally->list_hex);
    return 0;
}

/* --- the manifest --- */

static void set_created(json_t *manifest)
{
    char text[32];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_set_new(manifest, "created", json_string(text));
}

/* Facts of an older manifest of the same digest stay where the new ones say nothing. */
static json_t *make_manifest(const struct tally *tally, const json_t *facts, const json_t *older)
{
    char digest[80], list[80];
    json_t *manifest = older ? json_copy((json_t *)(uintptr_t)older) : json_object();
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)facts, name, value)
        if (!json_is_null(value) || !json_object_get(manifest, name))
            json_object_set(manifest, name, value);
    snprintf(digest, sizeof digest, "sha256:%s", tally->hex);
    snprintf(list, sizeof list, "%s", tally->list_hex);
    json_object_set_new(manifest, "schema", json_integer(IMAGE_MANIFEST_SCHEMA));
    json_object_set_new(manifest, "digest", json_string(digest));
    json_object_set_new(manifest, "base", json_string(tally->build->on_host ? "host" : "none"));
    json_object_set_new(manifest, "files", json_integer(tally->files));
    json_object_set_new(manifest, "bytes", json_integer(tally->bytes));
    json_object_set_new(manifest, "list_sha256", json_string(list));
    set_created(manifest);
    return manifest;
}

/* --- the place --- */

static int move(const struct image_build *build, const char *from, const char *folder,
                const char *name, struct err *err)
{
    own_fd fd = openat(build->store->dirfd, folder, FOLDER);
    if (fd < 0 || renameat(build->work, from, fd, name) < 0 || fsync(fd) < 0)
        return image_store_sys(err, "give an image its place in the store");
    return 0;
}

static bool tree_there(const struct image_store *store, const char *hex)
{
    char path[80];
    snprintf(path, sizeof path, "trees/%.64s", hex);
    return faccessat(store->dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A tree that was found changed, or that a killed process left, goes into work/. */
static int set_aside(const struct image_build *build, const char *hex, struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, "manifests/%.64s.json", hex);
    unlinkat(build->store->dirfd, path, 0);
    snprintf(path, sizeof path, "trees/%.64s", hex);
    image_path_remove(build->work, "old");
    if (renameat(build->store->dirfd, path, build->work, "old") < 0)
        return image_store_sys(err, "replace the tree of an image");
    return 0;
}

static int place_tree(struct image_build *build, const struct tally *tally, bool *out_kept,
                      struct err *err)
{
    char reason[8], path[80];
    const struct image_store *store = build->store;
    image_bad_read(store, tally->hex, reason, sizeof reason);
    bool there = tree_there(store, tally->hex);
    *out_kept = there && !reason[0] && image_manifest_there(store, tally->hex);
    if (*out_kept)
        return 0;
    if (there && set_aside(build, tally->hex, err) < 0)
        return -1;
    if (move(build, "tree", "trees", tally->hex, err) < 0 ||
        move(build, "list", "lists", tally->hex, err) < 0)
        return -1;
    snprintf(path, sizeof path, "bad/%.64s", tally->hex);
    unlinkat(store->dirfd, path, 0);
    return 0;
}

static int write_in(const struct image_build *build, const char *folder, const char *name,
                    struct str text, struct err *err)
{
    own_fd fd = openat(build->store->dirfd, folder, FOLDER);
    if (fd < 0)
        return image_store_sys(err, "open the folder '%s' of the images", folder);
    return image_path_write(build->work, fd, name, text, err);
}

static int publish(struct image_build *build, const struct tally *tally, const char *name,
                   const json_t *facts, json_t **out_manifest, struct err *err)
{
    char file[80], line[IMAGE_HEX_ROOM + 1];
    struct err ignored = ERR_INIT;
    own_json older = NULL;
    bool kept;
    own_fd turn = image_store_turn(build->store, err);
    if (turn < 0 || place_tree(build, tally, &kept, err) < 0)
        return -1;
    if (kept)
        (void)!image_manifest_read(build->store, tally->hex, &older, &ignored);
    own_json manifest = make_manifest(tally, facts, older);
    if (older) /* the tree that stays has a list of its own */
        json_object_set(manifest, "list_sha256", json_object_get(older, "list_sha256"));
    own_str text = json_write(manifest, JSON_COMPACT);
    snprintf(file, sizeof file, "%s.json", tally->hex);
    snprintf(line, sizeof line, "%s\n", tally->hex);
    /* Between these two it is an image without a name: the mark lets a sweep undo the first. */
    if (!kept && image_path_write(build->work, build->work, IMAGE_UNNAMED, str_of(line), err) < 0)
        return -1;
    if (write_in(build, "manifests", file, str_of(text), err) < 0 ||
        write_in(build, "names", name, str_of(line), err) < 0)
        return -1;
    unlinkat(build->work, IMAGE_UNNAMED, 0);
    *out_manifest = take_ptr(manifest);
    return 0;
}

static int check_facts(struct image_build *build, const char *name, const json_t *facts,
                       struct err *err)
{
    struct str base = json_get_str(facts, "base");
    if (!image_store_name_valid(name)) {
        char plain[80];
        str_plain(plain, sizeof plain, str_of(name));
        err_input(err, "image", plain, "[a-z0-9][a-z0-9._-]*, at most 63 characters, not 'host'",
                  "'%s' cannot be the name of an image", plain);
        return -1;
    }
    if (base.len > 0)
        build->on_host = str_is(base, "host");
    return 0;
}

int image_build_finish(struct image_build *build, const char *name, const json_t *facts,
                       struct image_entry *out, struct err *err)
{
    attr_cleanup(tally_done) struct tally tally = { .build = build, .list = -1,
                                                    .text = BUF_INIT(LIST_CHUNK + 8 * PATH_MAX) };
    json_t *manifest = NULL;
    if (check_facts(build, name, facts, err) < 0 ||
        tally_up(&tally, json_object_get(facts, "env"), err) < 0)
        return -1;
    if (syncfs(build->work) < 0)
        return image_store_sys(err, "write an image to the disk");
    if (publish(build, &tally, name, facts, &manifest, err) < 0)
        return -1;
    *out = (struct image_entry){ .on_host = build->on_host, .manifest = manifest };
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->hex, sizeof out->hex, "%s", tally.hex);
    return 0;
}
