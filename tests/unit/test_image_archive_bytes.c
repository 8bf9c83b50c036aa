/* Archives that are damaged, lie about themselves, or grow without bound; names of any bytes; and
 * what is exported again. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "check.h"
#include "image/archive/archive.h"
#include "image/archive/oci.h"
#include "images_place.h"
#include "tar_make.h"

struct done {
    struct images_place place;
    struct err err;
    struct image_import_report report;
    struct image_entry entry;
    int rc;
};

static struct done import_fd(int fd, int64_t bytes_max)
{
    struct done done = { .place = IMAGES_PLACE_INIT, .err = ERR_INIT };
    const struct image_import_options options = { .bytes_max = bytes_max };
    images_place_open(&done.place);
    struct image_build *build = images_start(&done.place, NULL);
    done.rc = image_import(build, fd, &options, &done.report, &done.err);
    if (done.rc == 0)
        CHECK(image_build_finish(build, "small", done.report.facts, &done.entry, &done.err) == 0);
    image_build_close(build);
    return done;
}

static struct done import(struct str bytes, int64_t bytes_max)
{
    own_fd fd = tar_fd(bytes);
    return import_fd(fd, bytes_max);
}

static void done_with(struct done *done)
{
    image_import_report_done(&done->report);
    image_entry_done(&done->entry);
}

static void refused(struct done *done, const char *words)
{
    images_refused(done->rc, &done->err, words);
    CHECK_INT(images_count(&done->place, "names"), 0);
    CHECK_INT(images_count(&done->place, "work"), 0);
    done_with(done);
}

static bool is_there(const struct done *done, const char *path, struct stat *st)
{
    char whole[5000];
    snprintf(whole, sizeof whole, "trees/%s/%s", done->entry.hex, path);
    return images_stat(&done->place, whole, st);
}

TEST(names_are_bytes_of_any_kind)
{
    /* The second is "e" with a combining accent: nobody may compose it. */
    static const char *const names[] = { "etc/bad\xff\xfe", "etc/e\xcc\x81", "etc/new\nline",
                                         "etc/\xe6\x97\xa5" };
    own_buf tar = BUF_INIT(TAR_MAKE_MAX);
    struct stat st;
    for (size_t i = 0; i < array_len(names); i++) {
        if (i > 1)
            tar_pax(&tar, "path", names[i]);
        tar_add(&tar, '0', i > 1 ? "short" : names[i], "1");
    }
    tar_end(&tar);
    struct done done = import(buf_str(&tar), 0);
    CHECK_TEXT(done.err.text, "");
    for (size_t i = 0; i < array_len(names); i++)
        CHECK(is_there(&done, names[i], &st));
    done_with(&done);
}

TEST(a_long_path_is_whole)
{
    own_buf tar = BUF_INIT(TAR_MAKE_MAX), path = BUF_INIT(4096);
    struct stat st;
    buf_add_text(&path, "usr");
    for (int i = 0; i < 15; i++)
        buf_printf(&path, "/%0250d", i);
    tar_file(&tar, path.at, STR("deep"));
    tar_end(&tar);
    struct done done = import(buf_str(&tar), 0);
    CHECK_TEXT(done.err.text, "");
    CHECK(is_there(&done, path.at, &st));
    done_with(&done);
}

TEST(a_truncated_archive_is_refused)
{
    own_buf layer = BUF_INIT(TAR_MAKE_MAX), tar = BUF_INIT(TAR_MAKE_MAX);
    own_str big = buf_alloc_zero(1, 300000);
    tar_file(&layer, "bin/big", (struct str){ big, 300000 });
    tar_end(&layer);
    tar_docker(&tar, &layer, 1);
    static const size_t cuts[] = { 1, 511, 513, 4096, 200000, 300500 };
    for (size_t i = 0; i < array_len(cuts); i++) {
        struct done done = import((struct str){ tar.at, cuts[i] }, 0);
        CHECK_INT(done.rc, -1);
        CHECK_INT(done.err.kind, ERR_INPUT);
        done_with(&done);
        done = import((struct str){ layer.at, cuts[i] }, 0);
        CHECK_INT(done.rc, -1);
        CHECK_INT(done.err.kind, ERR_INPUT);
        done_with(&done);
    }
}

TEST(a_sparse_file_is_counted_by_its_length)
{
    static const char *const records[][2] = { { "GNU.sparse.major", "1" },
                                              { "GNU.sparse.minor", "0" },
                                              { "GNU.sparse.name", "bin/sparse" },
                                              { "GNU.sparse.realsize", "100000000000" },
                                              { NULL, NULL } };
    static const char map[512] = "1\n0\n4\n"; /* GNU 1.0: the map stands before the data */
    own_buf tar = BUF_INIT(TAR_MAKE_MAX);
    tar_records(&tar, records);
    tar_header(&tar, '0', "GNUSparseFile/x", "", 1024);
    buf_add(&tar, map, sizeof map);
    buf_add(&tar, (char[512]){ "data" }, 512);
    tar_end(&tar);
    struct done done = import(buf_str(&tar), 0);
    refused(&done, "'bin/sparse' in the archive makes the image larger than");
    done = import(buf_str(&tar), INT64_C(200000000000));
    refused(&done, "the archive is a bomb");
}

TEST(the_limit_of_bytes_is_of_all_files)
{
    own_buf tar = BUF_INIT(TAR_MAKE_MAX);
    own_str text = buf_alloc_zero(1, 10000);
    tar_file(&tar, "bin/a", (struct str){ text, 10000 });
    tar_file(&tar, "bin/b", (struct str){ text, 10000 });
    tar_end(&tar);
    struct done done = import(buf_str(&tar), 15000);
    refused(&done, "larger than 15000 bytes");
    done = import(buf_str(&tar), 30000);
    CHECK_TEXT(done.err.text, "");
    CHECK_INT(done.report.bytes, 20000);
    done_with(&done);
}

TEST(a_pax_header_that_lies_is_judged_as_it_is_read)
{
    static const struct {
        const char *key, *value, *words;
    } rows[] = {
        { "path", "../../etc/passwd", "has a path with '..'" },
        { "path", "/etc/passwd", "has an absolute path" },
        { "linkpath", "../../etc/passwd", "has a target with '..'" },
        { "size", "99999999999999", "larger than" },
        { "size", "-5", "" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_buf tar = BUF_INIT(TAR_MAKE_MAX);
        tar_pax(&tar, rows[i].key, rows[i].value);
        tar_add(&tar, strcmp(rows[i].key, "linkpath") == 0 ? '1' : '0', "bin/ok", "text");
        tar_end(&tar);
        struct done done = import(buf_str(&tar), 0);
        if (rows[i].words[0])
            images_refused(done.rc, &done.err, rows[i].words);
        done_with(&done);
    }
}

TEST(what_is_no_image_is_refused)
{
    static const struct {
        struct tar_entry entries[4];
        const char *words;
    } rows[] = {
        { { { '0', "hello.c", "int main;" } }, "neither bin, etc, lib, sbin nor usr" },
        { { { '0', "bin/sh", "" }, { '0', "x/.wh.y", "" } }, "as whiteouts of layers do" },
        { { { '0', "oci-layout", "{}" } }, "neither index.json nor manifest.json" },
        { { { '0', "manifest.json", "{" } }, "manifest.json of the archive" },
        { { { '0', "manifest.json", "[]" } }, "is no list of 1 to 1000 images" },
        { { { '0', "index.json", "{\"manifests\":[]}" } }, "has no image for linux/" },
        { { { '0', "index.json", "[1]" } }, "neither an index nor a manifest" },
        { { { '0', "index.json", "{}" }, { '0', "index.json", "{}" } }, "stands there twice" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_buf tar = BUF_INIT(TAR_MAKE_MAX);
        tar_all(&tar, rows[i].entries);
        struct done done = import(buf_str(&tar), 0);
        refused(&done, rows[i].words);
    }
    struct done done = import(STR("this is a text, not an archive, and long enough to be one"), 0);
    refused(&done, "the archive cannot be read");
    done = import(STR(""), 0);
    CHECK_INT(done.rc, -1);
    done_with(&done);
}

static void export(const struct done *done, struct buf *out)
{
    struct err err = ERR_INIT;
    own_fd fd = memfd_create("export", MFD_CLOEXEC);
    CHECK(image_export(&done->place.store, &done->entry, /* added= */ false, fd, &err) == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && buf_read(out, fd) == 0);
}

TEST(an_export_is_the_same_image_and_the_same_bytes)
{
    static const struct tar_entry entries[] = {
        { '0', "bin/sh", "sh" }, { '2', "lib", "usr/lib" }, { '5', "tmp", NULL },
        { '0', "etc/bad\xff", "1" }, { '1', "bin/ash", "bin/sh" }, { 0 } };
    own_buf tar = BUF_INIT(TAR_MAKE_MAX), one = BUF_INIT(TAR_MAKE_MAX);
    own_buf two = BUF_INIT(TAR_MAKE_MAX), three = BUF_INIT(TAR_MAKE_MAX);
    tar_all(&tar, entries);
    struct done first = import(buf_str(&tar), 0);
    CHECK_TEXT(first.err.text, "");
    export(&first, &one);
    export(&first, &two);
    CHECK(str_eq(buf_str(&one), buf_str(&two)));
    struct done again = import(buf_str(&one), 0);
    CHECK_TEXT(again.err.text, "");
    CHECK_TEXT(again.report.form, "oci");
    CHECK_TEXT(again.entry.hex, first.entry.hex);
    export(&again, &three);
    CHECK(str_eq(buf_str(&one), buf_str(&three)));
    done_with(&first);
    done_with(&again);
}

TEST(an_image_on_the_host_is_exported_only_as_what_it_adds)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct err err = ERR_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    images_place_open(&place);
    struct image_build *build = images_start(&place, NULL);
    images_file(build, "usr/local/bin/x", "1", 0755);
    json_t *facts = json_pack("{s:s}", "base", "host");
    CHECK(image_build_finish(build, "data", facts, &entry, &err) == 0);
    json_decref(facts);
    image_build_close(build);
    own_fd fd = memfd_create("export", MFD_CLOEXEC);
    images_refused(image_export(&place.store, &entry, /* added= */ false, fd, &err), &err,
                   "is on the host");
    err = ERR_INIT;
    CHECK(image_export(&place.store, &entry, /* added= */ true, fd, &err) == 0);
}
