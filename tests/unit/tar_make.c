/* Writing tar by hand. */
#include "tar_make.h"

#include <jansson.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "image/archive/oci.h"

#define BLOCK 512

static void octal(char *to, size_t room, uint64_t value)
{
    snprintf(to, room, "%0*llo", (int)room - 1, (unsigned long long)value);
}

void tar_header(struct buf *tar, char type, const char *name, const char *link, uint64_t size)
{
    char block[BLOCK] = { 0 };
    unsigned sum = 0;
    memcpy(block, name, strnlen(name, 100));
    octal(block + 100, 8, 04755);
    octal(block + 108, 8, 1000);
    octal(block + 116, 8, 1000);
    octal(block + 124, 12, size);
    octal(block + 136, 12, 1000);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 157, link, strnlen(link, 100));
    memcpy(block + 257, "ustar\00000", 8);
    octal(block + 329, 8, 1);
    octal(block + 337, 8, 3);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    CHECK(buf_add(tar, block, BLOCK) == 0);
}

static void content(struct buf *tar, struct str bytes)
{
    static const char zeros[BLOCK];
    CHECK(buf_add_str(tar, bytes) == 0);
    CHECK(buf_add(tar, zeros, (BLOCK - bytes.len % BLOCK) % BLOCK) == 0);
}

static void long_name(struct buf *tar, char type, const char *name)
{
    if (strlen(name) <= 100)
        return;
    tar_header(tar, type, "././@LongLink", "", strlen(name) + 1);
    content(tar, (struct str){ name, strlen(name) + 1 });
}

void tar_file(struct buf *tar, const char *name, struct str bytes)
{
    long_name(tar, 'L', name);
    tar_header(tar, '0', name, "", bytes.len);
    content(tar, bytes);
}

void tar_add(struct buf *tar, char type, const char *name, const char *text)
{
    if (type == '0') {
        tar_file(tar, name, str_of(text));
        return;
    }
    long_name(tar, 'L', name);
    long_name(tar, 'K', text);
    tar_header(tar, type, name, text, 0);
}

static void add_record(struct buf *out, const char *key, const char *value)
{
    size_t len = strlen(key) + strlen(value) + 3, digits = 1;
    while (snprintf(NULL, 0, "%zu", len + digits) != (int)digits)
        digits++;
    buf_printf(out, "%zu %s=%s\n", len + digits, key, value);
}

void tar_records(struct buf *tar, const char *const (*records)[2])
{
    own_buf text = BUF_INIT(TAR_MAKE_MAX);
    for (; (*records)[0]; records++)
        add_record(&text, (*records)[0], (*records)[1]);
    tar_header(tar, 'x', "PaxHeaders/x", "", text.len);
    content(tar, buf_str(&text));
}

void tar_pax(struct buf *tar, const char *key, const char *value)
{
    const char *const records[][2] = { { key, value }, { NULL, NULL } };
    tar_records(tar, records);
}

void tar_end(struct buf *tar)
{
    static const char zeros[2 * BLOCK];
    CHECK(buf_add(tar, zeros, sizeof zeros) == 0);
}

void tar_all(struct buf *tar, const struct tar_entry *entries)
{
    for (; entries->name; entries++)
        tar_add(tar, entries->type, entries->name, entries->text ? entries->text : "");
    tar_end(tar);
}

int tar_fd(struct str bytes)
{
    int fd = memfd_create("tar", MFD_CLOEXEC);
    CHECK(fd >= 0 && io_write_all(fd, bytes.at, bytes.len) == 0);
    return fd;
}

static json_t *sha(const char *hex)
{
    char digest[72];
    snprintf(digest, sizeof digest, "sha256:%s", hex);
    return json_string(digest);
}

static char *config_text(const struct buf *layers, size_t count, const struct tar_oci *how)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < count; i++) {
        char hex[HASH_HEX_ROOM];
        hash_hex(buf_str(&layers[i]), hex);
        json_array_append_new(ids, sha(how->wrong_diff_id ? how->wrong_diff_id : hex));
    }
    own_json config = json_pack("{s:s,s:s,s:{s:[s,s],s:s,s:[s]},s:{s:s,s:o}}", "architecture",
                                how->architecture ? how->architecture : oci_architecture(), "os",
                                "linux", "config", "Env", "PATH=/usr/bin", "LANG=C.UTF-8",
                                "WorkingDir", "/srv", "Entrypoint", "/bin/sh", "rootfs", "type",
                                "layers", "diff_ids", ids);
    return json_write(config, JSON_COMPACT);
}

void tar_docker(struct buf *out, const struct buf *layers, size_t count)
{
    const struct tar_oci how = { 0 };
    own_str config = config_text(layers, count, &how);
    char hex[HASH_HEX_ROOM], name[100];
    json_t *names = json_array();
    hash_hex(str_of(config), hex);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%064zx/layer.tar", i);
        tar_file(out, name, buf_str(&layers[i]));
        json_array_append_new(names, json_string(name));
    }
    snprintf(name, sizeof name, "%s.json", hex);
    tar_file(out, name, str_of(config));
    own_json list = json_pack("[{s:s,s:[s],s:o}]", "Config", name, "RepoTags", "small:1", "Layers",
                              names);
    own_str text = json_write(list, JSON_COMPACT);
    tar_file(out, "manifest.json", str_of(text));
    tar_end(out);
}

static json_t *blob(struct buf *out, struct str bytes, const char *wrong, const char *type,
                    int64_t more)
{
    char hex[HASH_HEX_ROOM], name[100];
    hash_hex(bytes, hex);
    snprintf(name, sizeof name, "blobs/sha256/%s", wrong ? wrong : hex);
    tar_file(out, name, bytes);
    return json_pack("{s:s,s:o,s:I}", "mediaType", type, "digest", sha(wrong ? wrong : hex), "size",
                     (json_int_t)bytes.len + more);
}

void tar_layout(struct buf *out, const struct buf *layers, size_t count, const struct tar_oci *how)
{
    json_t *list = json_array();
    own_str config = config_text(layers, count, how);
    tar_file(out, "oci-layout", STR("{\"imageLayoutVersion\":\"1.0.0\"}"));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, blob(out, buf_str(&layers[i]), i ? NULL : how->wrong_layer,
                                         "application/vnd.oci.image.layer.v1.tar",
                                         i ? 0 : how->more_bytes));
    own_json manifest = json_pack(
        "{s:i,s:o,s:o}", "schemaVersion", 2, "config",
        blob(out, str_of(config), how->wrong_config, "application/vnd.oci.image.config.v1+json", 0),
        "layers", list);
    own_str text = json_write(manifest, JSON_COMPACT);
    json_t *member = blob(out, str_of(text), NULL, "application/vnd.oci.image.manifest.v1+json", 0);
    if (how->ref)
        json_object_set_new(member, "annotations",
                            json_pack("{s:s}", "org.opencontainers.image.ref.name", how->ref));
    if (how->architecture)
        json_object_set_new(
            member, "platform",
            json_pack("{s:s,s:s}", "os", "linux", "architecture", how->architecture));
    own_json index = json_pack("{s:i,s:[o]}", "schemaVersion", 2, "manifests", member);
    own_str index_text = json_write(index, JSON_COMPACT);
    tar_file(out, "index.json", str_of(index_text));
    tar_end(out);
}
