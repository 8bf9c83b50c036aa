/* Which images there are: names, manifests, marks of changed ones. Names come from the user and
 * from requests; what is read from the disk is capped and checked as well. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/own.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DIGEST_HEAD "sha256:"
#define NAME_BOUND "host, or a name that 'cupel images' lists"

bool image_store_name_valid(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len >= IMAGE_NAME_ROOM || strcmp(name, "host") == 0 ||
        !strchr("abcdefghijklmnopqrstuvwxyz0123456789", name[0]))
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

void image_entry_done(struct image_entry *entry)
{
    json_decref(entry->manifest);
    *entry = IMAGE_ENTRY_INIT;
}

int image_name_read(const struct image_store *store, const char *name, char out_hex[IMAGE_HEX_ROOM])
{
    char path[16 + IMAGE_NAME_ROOM], text[IMAGE_HEX_ROOM + 1];
    if (!image_store_name_valid(name))
        return -1;
    snprintf(path, sizeof path, "names/%s", name);
    if (io_read_text(store->dirfd, path, text, sizeof text) < 64)
        return -1;
    text[64] = 0;
    if (!image_hex_valid(text))
        return -1;
    memcpy(out_hex, text, IMAGE_HEX_ROOM);
    return 0;
}

static void manifest_path(const char *hex, char out[96])
{
    snprintf(out, 96, "manifests/%.64s.json", hex);
}

bool image_manifest_there(const struct image_store *store, const char *hex)
{
    char path[96];
    manifest_path(hex, path);
    return image_hex_valid(hex) && faccessat(store->dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int image_manifest_read(const struct image_store *store, const char *hex, json_t **out,
                        struct err *err)
{
    char path[96];
    own_buf text = BUF_INIT(IMAGE_MANIFEST_MAX);
    manifest_path(hex, path);
    own_fd fd = openat(store->dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || buf_read(&text, fd) < 0)
        return err_sys(err, "read the manifest of image 'sha256:%.12s'", hex);
    own_json manifest = json_read(buf_str(&text), IMAGE_MANIFEST_MAX, err);
    struct str digest = json_get_str(manifest, "digest");
    if (!manifest || digest.len != 71 || strcmp(digest.at + 7, hex) != 0 ||
        json_integer_value(json_object_get(manifest, "schema")) != IMAGE_MANIFEST_SCHEMA)
        return err_set(err, ERR_HOST, "the manifest of image 'sha256:%.12s' is not valid", hex);
    *out = take_ptr(manifest);
    return 0;
}

void image_bad_read(const struct image_store *store, const char *hex, char *out, size_t room)
{
    char path[80];
    snprintf(path, sizeof path, "bad/%.64s", hex);
    if (io_read_text(store->dirfd, path, out, room) < 0)
        out[0] = 0;
    else if (out[0] == 0)
        snprintf(out, room, "it was changed");
}

/* --- find --- */

static const char *name_at(const void *table, size_t i)
{
    return ((const struct image_names *)table)->at[i];
}

static int refuse_unknown(const struct image_store *store, const char *name, struct err *err)
{
    own_image_names names = IMAGE_NAMES_INIT;
    own_fd fd = openat(store->dirfd, "names", FOLDER);
    char plain[80];
    str_plain(plain, sizeof plain, str_of(name));
    if (fd >= 0 && image_names_read(fd, &names) < 0)
        names = IMAGE_NAMES_INIT;
    const char *near = opt_nearest(name, names.count, name_at, &names);
    err_input(err, "image", plain, NAME_BOUND, "unknown image '%s'", plain);
    if (near)
        err_hint(err, "did you mean '%.64s'? 'cupel images' lists them", near);
    else
        err_hint(err, "'cupel images' lists the images; 'cupel images --help' the commands that "
                      "make one");
    return -1;
}

/* The name of a digest, if it has one. */
static void find_name(const struct image_store *store, struct image_entry *entry)
{
    own_image_names names = IMAGE_NAMES_INIT;
    own_fd fd = openat(store->dirfd, "names", FOLDER);
    char hex[IMAGE_HEX_ROOM];
    if (fd < 0 || image_names_read(fd, &names) < 0)
        return;
    for (size_t i = 0; i < names.count; i++) {
        if (image_name_read(store, names.at[i], hex) == 0 && strcmp(hex, entry->hex) == 0) {
            snprintf(entry->name, sizeof entry->name, "%s", names.at[i]);
            return;
        }
    }
}

static int refuse_bad(const struct image_entry *entry, const char *shown, const char *reason,
                      struct err *err)
{
    err_input(err, "image", shown, "an image as it was made", "image '%.80s' is refused: %.300s",
              shown, reason);
    err_hint(err, "make it again, or remove it: 'cupel images rm %s'",
             entry->name[0] ? entry->name : entry->hex);
    return -1;
}

int image_store_find_any(const struct image_store *store, const char *name, struct image_entry *out,
                         struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    if (strncmp(name, DIGEST_HEAD, 7) == 0) {
        if (!image_hex_valid(name + 7) || !image_manifest_there(store, name + 7))
            return refuse_unknown(store, name, err);
        memcpy(entry.hex, name + 7, IMAGE_HEX_ROOM);
        find_name(store, &entry);
    } else {
        if (image_name_read(store, name, entry.hex) < 0 || !image_manifest_there(store, entry.hex))
            return refuse_unknown(store, name, err);
        snprintf(entry.name, sizeof entry.name, "%s", name);
    }
    if (image_manifest_read(store, entry.hex, &entry.manifest, err) < 0)
        return -1;
    entry.on_host = str_is(json_get_str(entry.manifest, "base"), "host");
    *out = entry;
    entry = IMAGE_ENTRY_INIT;
    return 0;
}

int image_store_find(const struct image_store *store, const char *name, struct image_entry *out,
                     struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    char reason[300];
    if (image_store_find_any(store, name, &entry, err) < 0)
        return -1;
    image_bad_read(store, entry.hex, reason, sizeof reason);
    if (reason[0])
        return refuse_bad(&entry, name, reason, err);
    *out = entry;
    entry = IMAGE_ENTRY_INIT;
    return 0;
}

int image_store_hold(const struct image_store *store, const struct image_entry *entry, int *out_fd,
                     struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, "trees/%s", entry->hex);
    own_fd fd = openat(store->dirfd, path, FOLDER);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || !image_manifest_there(store, entry->hex))
        return refuse_unknown(store, entry->name[0] ? entry->name : entry->hex, err);
    *out_fd = take_fd(&fd);
    return 0;
}

/* --- list --- */

static json_t *row_of(const struct image_store *store, const char *name, const char *hex)
{
    static const char *const members[] = { "digest",  "base",   "bytes",    "files",
                                           "created", "source", "languages" };
    struct err ignored = ERR_INIT;
    own_json manifest = NULL;
    char reason[300];
    if (image_manifest_read(store, hex, &manifest, &ignored) < 0)
        return NULL;
    json_t *row = json_pack("{s:s}", "name", name);
    for (size_t i = 0; i < array_len(members); i++)
        json_object_set(row, members[i], json_object_get(manifest, members[i]));
    image_bad_read(store, hex, reason, sizeof reason);
    json_object_set_new(row, "changed", json_text_or_null(reason));
    return row;
}

int image_store_names(const struct image_store *store, json_t **out, struct err *err)
{
    own_image_names names = IMAGE_NAMES_INIT;
    own_fd fd = openat(store->dirfd, "names", FOLDER);
    /* Until the first build, an engine may have made the folder for trees alone. */
    const bool none = fd < 0 && errno == ENOENT;
    if (!none && (fd < 0 || image_names_read(fd, &names) < 0))
        return image_store_sys(err, "read the names of the images");
    *out = json_array();
    for (size_t i = 0; i < names.count; i++)
        json_array_append_new(*out, json_string(names.at[i]));
    return 0;
}

int image_store_list(const struct image_store *store, json_t **out, struct err *err)
{
    own_json names = NULL;
    char hex[IMAGE_HEX_ROOM];
    size_t i;
    json_t *name;
    if (image_store_names(store, &names, err) < 0)
        return -1;
    own_json list = json_array();
    json_array_foreach (names, i, name) {
        json_t *row = image_name_read(store, json_string_value(name), hex) == 0
                          ? row_of(store, json_string_value(name), hex)
                          : NULL;
        if (row)
            json_array_append_new(list, row);
    }
    *out = take_ptr(list);
    return 0;
}

void image_store_digest(const struct image_entry *entry, const char *host_digest, char out[72])
{
    char hex[HASH_HEX_ROOM];
    struct hash hash;
    snprintf(hex, sizeof hex, "%s", entry->hex);
    if (entry->on_host) {
        hash_start(&hash);
        hash_add(&hash, entry->hex, 65);
        hash_add(&hash, host_digest, strlen(host_digest) + 1);
        hash_end_hex(&hash, hex);
    }
    snprintf(out, 72, "sha256:%s", hex);
}
