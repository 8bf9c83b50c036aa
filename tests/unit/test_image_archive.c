/* Archives become images: layers one over another, and what is refused of them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "image/archive/archive.h"
#include "images_place.h"
#include "tar_make.h"

#define LAYERS_MAX 3

struct imported {
    struct images_place place;
    struct err err;
    struct image_import_report report;
    struct image_entry entry;
    int rc;
};

/* Everything in one: bytes to an image, or to a refusal. */
static struct imported import(struct str bytes, const char *ref)
{
    struct imported done = { .place = IMAGES_PLACE_INIT, .err = ERR_INIT };
    const struct image_import_options options = { .ref = ref };
    images_place_open(&done.place);
    struct image_build *build = images_start(&done.place, NULL);
    own_fd fd = tar_fd(bytes);
    done.rc = image_import(build, fd, &options, &done.report, &done.err);
    if (done.rc == 0) {
        CHECK(image_build_finish(build, "small", done.report.facts, &done.entry, &done.err) == 0);
        CHECK(image_store_verify(&done.place.store, &done.entry, &done.err) == 0);
    }
    image_build_close(build);
    CHECK_INT(images_count(&done.place, "work"), 0);
    return done;
}

static struct imported import_layers(const struct tar_entry layers[][12], size_t count)
{
    struct buf tars[LAYERS_MAX], out = BUF_INIT(TAR_MAKE_MAX);
    for (size_t i = 0; i < count; i++) {
        tars[i] = BUF_INIT(TAR_MAKE_MAX);
        tar_all(&tars[i], layers[i]);
    }
    tar_docker(&out, tars, count);
    struct imported done = import(buf_str(&out), NULL);
    for (size_t i = 0; i < count; i++)
        buf_done(&tars[i]);
    buf_done(&out);
    return done;
}

static void done_with(struct imported *done)
{
    image_import_report_done(&done->report);
    image_entry_done(&done->entry);
}

/* What a path of the image is: the text of a file, "-> target", "/" for a folder, or NULL. */
static const char *at(const struct imported *done, const char *path)
{
    static char text[256];
    char whole[400];
    struct stat st;
    snprintf(whole, sizeof whole, "trees/%s/%s", done->entry.hex, path);
    if (!images_stat(&done->place, whole, &st))
        return NULL;
    if (S_ISDIR(st.st_mode))
        return "/";
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(done->place.store.dirfd, whole, text + 3, sizeof text - 4);
        memcpy(text, "-> ", 3);
        text[n > 0 ? n + 3 : 0] = '\0';
        return text;
    }
    CHECK(S_ISREG(st.st_mode) && (st.st_mode & 07222) == 0);
    images_read(&done->place, whole, text);
    return text;
}

static void expect(const struct imported *done, const char *const (*rows)[2])
{
    CHECK_TEXT(done->err.text, "");
    for (; (*rows)[0]; rows++) {
        const char *found = at(done, (*rows)[0]);
        if (!found != !(*rows)[1] || (found && strcmp(found, (*rows)[1]) != 0))
            check_failed(__FILE__, __LINE__, "%s is %s, not %s", (*rows)[0],
                         found ? found : "not there", (*rows)[1] ? (*rows)[1] : "away");
    }
}

TEST(layers_lie_one_over_another)
{
    static const struct tar_entry layers[][12] = {
        { { '5', "etc/", NULL }, { '0', "etc/a", "1" }, { '0', "./etc/b", "1" },
          { '2', "lib", "usr/lib" }, { '0', "old/x", "x" }, { '0', "old/y/z", "z" },
          { '0', "bin/sh", "sh" }, { '1', "bin/ash", "bin/sh" }, { '2', "link", "a" },
          { '1', "hard", "link" }, { '3', "dev/null", NULL } },
        { { '0', "etc/b", "2" }, { '0', "etc/.wh.a", "" }, { '0', "old/-first", "new" },
          { '0', "old/.wh..wh..opq", "" }, { '0', "old/new", "new" }, { '5', "lib", NULL },
          { '0', "lib/q", "q" }, { '0', "bin", "now a file" }, { '0', ".wh..wh.aufs", "" } },
        { { '0', "etc/a", "3" }, { '0', ".wh.link", "" }, { '0', ".wh.none", "" } },
    };
    static const char *const two[][2] = {
        { "etc/a", NULL },     { "etc/b", "2" },     { "lib", "/" },        { "lib/q", "q" },
        { "old/x", NULL },     { "old/y", NULL },    { "old/-first", "new" }, { "old/new", "new" },
        { "bin", "now a file" }, { "link", "-> a" }, { "hard", "-> a" },    { "dev/null", NULL },
        { NULL, NULL },
    };
    static const char *const three[][2] = { { "etc/a", "3" }, { "link", NULL }, { NULL, NULL } };
    struct imported done = import_layers(layers, 2);
    expect(&done, two);
    CHECK_INT(done.report.skipped, 2);
    done_with(&done);
    done = import_layers(layers, 3);
    expect(&done, three);
    CHECK_INT(done.report.layers, 3);
    done_with(&done);
}

TEST(a_whiteout_below_a_file_is_refused)
{
    static const struct tar_entry layers[][12] = { { { '0', "bin", "file" } },
                                                   { { '0', "bin/.wh.x", "" } } };
    struct imported done = import_layers(layers, 2);
    images_refused(done.rc, &done.err, "'bin/x' in the archive is below something");
    done_with(&done);
}

TEST(an_opaque_folder_hides_lower_layers_wherever_its_mark_stands)
{
    static const struct tar_entry layers[][12] = {
        { { '0', "d/low", "1" }, { '0', "d/sub/low", "1" }, { '0', "d/sub/deep/low", "1" } },
        { { '0', "d/sub/new", "2" }, { '0', "d/sub/.wh..wh..opq", "" }, { '0', "d/new", "2" },
          { '0', "d/.wh..wh..opq", "" }, { '0', "d/sub/deep/more", "2" },
          { '0', "d/sub/deep/.wh..wh..opq", "" } },
    };
    static const char *const rows[][2] = {
        { "d/low", NULL }, { "d/sub/low", NULL }, { "d/sub/deep/low", NULL }, { "d/new", "2" },
        { "d/sub/new", "2" }, { "d/sub/deep/more", "2" }, { NULL, NULL } };
    struct imported done = import_layers(layers, 2);
    expect(&done, rows);
    done_with(&done);
}

TEST(kinds_change_from_layer_to_layer)
{
    static const struct tar_entry layers[][12] = {
        { { '0', "a/x", "1" }, { '0', "b", "1" }, { '2', "c", "/etc" }, { '0', "d", "1" } },
        { { '2', "a", "b" }, { '0', "b/x", "2" }, { '5', "c", NULL }, { '0', "c/passwd", "2" },
          { '3', "d", NULL } },
    };
    static const char *const rows[][2] = { { "a", "-> b" },      { "b", "1" }, { "c", "/" },
                                           { "c/passwd", "2" }, { "d", NULL }, { NULL, NULL } };
    struct imported done = import_layers(layers, 2);
    images_refused(done.rc, &done.err, "'b/x' in the archive is below something that is no folder");
    done_with(&done);
    static const struct tar_entry again[][12] = {
        { { '0', "a/x", "1" }, { '0', "b", "1" }, { '2', "c", "/etc" }, { '0', "d", "1" } },
        { { '2', "a", "b" }, { '5', "c", NULL }, { '0', "c/passwd", "2" }, { '3', "d", NULL } },
    };
    done = import_layers(again, 2);
    expect(&done, rows);
    CHECK_INT(done.report.skipped, 1);
    done_with(&done);
}

TEST(entries_that_no_honest_layer_has_are_refused_by_name)
{
    static char deep[6000], wide[400], part[] = "0123456789/";
    static const struct {
        const char *words;
        struct tar_entry layer[12];
    } rows[] = {
        { "'../x' in the archive has a path with '..'", { { '0', "../x", "1" } } },
        { "'a/../../x' in the archive has a path with '..'", { { '0', "a/../../x", "1" } } },
        { "'/etc/x' in the archive has an absolute path", { { '0', "/etc/x", "1" } } },
        { "'l/x' in the archive leads through a link",
          { { '2', "l", "/tmp" }, { '0', "l/x", "1" } } },
        { "'l/m/x' in the archive leads through a link",
          { { '2', "l/m", "../.." }, { '0', "l/m/x", "1" } } },
        { "'l' in the archive stands there twice",
          { { '5', "l", NULL }, { '2', "l", "/tmp" }, { '0', "l/x", "1" } } },
        { "'l' in the archive stands there twice", { { '2', "l", "a" }, { '2', "l", "b" } } },
        { "'l' in the archive stands there twice", { { '0', "l/x", "1" }, { '2', "l", "/" } } },
        { "'f' in the archive stands there twice", { { '0', "f", "1" }, { '2', "f", "/x" } } },
        { "'f' in the archive stands there twice", { { '2', "f", "/x" }, { '0', "f", "1" } } },
        { "'f/x' in the archive is below something that is no folder",
          { { '0', "f", "1" }, { '0', "f/x", "1" } } },
        { "'h' in the archive is a hard link to a file that is not there",
          { { '1', "h", "etc/shadow" } } },
        { "has an absolute target", { { '1', "h", "/etc/shadow" } } },
        { "has a target with '..'", { { '1', "h", "../../etc/shadow" } } },
        { "'l/shadow' in the archive leads through a link",
          { { '2', "l", "/etc" }, { '1', "h", "l/shadow" } } },
        { "'h' in the archive is a hard link to a folder",
          { { '5', "d", NULL }, { '1', "h", "d" } } },
        { "'.wh.' in the archive is a whiteout of no name", { { '0', ".wh.", "" } } },
        { "'a/.wh..' in the archive is a whiteout of no name", { { '0', "a/.wh..", "" } } },
        { "'.wh...' in the archive is a whiteout of no name", { { '0', ".wh...", "" } } },
        { "'.wh.a/b' in the archive is below a whiteout", { { '0', ".wh.a/b", "1" } } },
        { "'l/x' in the archive leads through a link",
          { { '2', "l", "/" }, { '0', "l/.wh.x", "" } } },
        { "'l' in the archive leads through a link",
          { { '2', "l", "/" }, { '0', "l/.wh..wh..opq", "" } } },
        { "'d/.wh.f' in the archive removes what the same layer adds",
          { { '0', "d/f", "1" }, { '0', "d/.wh.f", "" } } },
        { "has a path of more than 4095 bytes", { { '0', deep, "1" } } },
        { "has a name of more than 255 bytes", { { '0', wide, "1" } } },
        { "the root of the archive is no folder", { { '0', ".", "1" } } },
    };
    for (size_t i = 0; i + sizeof part < sizeof deep; i += sizeof part - 1)
        memcpy(deep + i, part, sizeof part);
    memset(wide, 'w', sizeof wide - 1);
    for (size_t i = 0; i < array_len(rows); i++) {
        struct imported done = import_layers(&rows[i].layer, 1);
        images_refused(done.rc, &done.err, rows[i].words);
        CHECK_TEXT(done.err.field, "image");
        CHECK_INT(images_count(&done.place, "files"), 0);
        done_with(&done);
    }
}

TEST(honest_repetitions_are_accepted)
{
    static const struct tar_entry layers[][12] = {
        { { '5', "d", NULL }, { '0', "d/f", "1" }, { '5', "d/", NULL }, { '0', "d/f", "2" },
          { '1', "d/f", "d/f" }, { '2', "l", "d" }, { '2', "l", "d" }, { '0', "./d//g", "3" } },
    };
    static const char *const rows[][2] = { { "d/f", "2" }, { "l", "-> d" }, { "d/g", "3" },
                                           { NULL, NULL } };
    struct imported done = import_layers(layers, 1);
    expect(&done, rows);
    done_with(&done);
}

static struct imported import_layout(const struct tar_oci *how, const char *ref)
{
    static const struct tar_entry entries[] = { { '0', "bin/sh", "sh" }, { 0 } };
    own_buf layer = BUF_INIT(TAR_MAKE_MAX), out = BUF_INIT(TAR_MAKE_MAX);
    tar_all(&layer, entries);
    tar_layout(&out, &layer, 1, how);
    return import(buf_str(&out), ref);
}

TEST(a_layout_gives_the_image_its_environment)
{
    struct imported done = import_layout(&(struct tar_oci){ .ref = "one" }, NULL);
    static const char *const rows[][2] = { { "bin/sh", "sh" }, { NULL, NULL } };
    expect(&done, rows);
    CHECK_TEXT(done.report.form, "oci");
    CHECK_TEXT(done.report.name, "one");
    const json_t *env = json_object_get(done.entry.manifest, "env");
    CHECK_TEXT(json_string_value(json_object_get(env, "PATH")), "/usr/bin");
    CHECK_TEXT(json_string_value(json_object_get(done.entry.manifest, "workdir")), "/srv");
    CHECK_INT(json_array_size(json_object_get(done.entry.manifest, "entrypoint")), 1);
    done_with(&done);
}

TEST(every_digest_is_compared)
{
    static const char wrong[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    static const struct {
        struct tar_oci how;
        const char *ref, *words;
    } rows[] = {
        { { .wrong_diff_id = wrong }, NULL, "another digest than its configuration says" },
        { { .wrong_layer = wrong }, NULL, "another digest than its manifest says" },
        { { .wrong_config = wrong }, NULL, "has another digest: sha256:" },
        { { .more_bytes = 1 }, NULL, "bytes, and its manifest says" },
        { { .architecture = "s390x" }, NULL, "the archive has no image for linux/" },
        { { .ref = "one" }, "two", "the archive has no image 'two'" },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct imported done = import_layout(&rows[i].how, rows[i].ref);
        images_refused(done.rc, &done.err, rows[i].words);
        done_with(&done);
    }
    struct imported done = import_layout(&(struct tar_oci){ .ref = "one" }, "one");
    CHECK_TEXT(done.err.text, "");
    done_with(&done);
}
