/* The store of images: builds, digests, names, what is shared, what is refused. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "images_place.h"

#define NONE NULL

TEST(an_image_has_the_entries_that_were_given)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct err err = ERR_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct stat st;
    char path[200], text[256];
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    CHECK(image_build_dir(build, STR("usr/lib"), 77, &err) == 0);
    images_file(build, "usr/bin/tool", "#!/bin/sh\n", 04755);
    images_file(build, "etc/motd", "hello\n", 0666);
    CHECK(image_build_symlink(build, STR("bin"), STR("usr/bin"), &err) == 0);
    CHECK(image_build_link(build, STR("usr/bin/other"), STR("usr/bin/tool"), &err) == 0);
    images_finish(build, "small", &entry);

    snprintf(path, sizeof path, "trees/%s/usr/bin/tool", entry.hex);
    CHECK(images_stat(&place, path, &st) && (st.st_mode & 07777) == 0555);
    CHECK_INT(st.st_mtim.tv_sec, 1000);
    CHECK_INT(st.st_nlink, 3);
    snprintf(path, sizeof path, "trees/%s/usr/lib", entry.hex);
    CHECK(images_stat(&place, path, &st) && (st.st_mode & 07777) == 0755);
    CHECK_INT(st.st_mtim.tv_sec, 77);
    snprintf(path, sizeof path, "trees/%s/etc/motd", entry.hex);
    CHECK(images_stat(&place, path, &st) && (st.st_mode & 07777) == 0444);
    images_read(&place, path, text);
    CHECK_TEXT(text, "hello\n");
    snprintf(path, sizeof path, "trees/%s/bin", entry.hex);
    CHECK(images_stat(&place, path, &st) && S_ISLNK(st.st_mode));
    CHECK_INT(json_integer_value(json_object_get(entry.manifest, "files")), 3);
    CHECK_INT(json_integer_value(json_object_get(entry.manifest, "bytes")), 26);
    CHECK_INT(images_count(&place, "work"), 0);
    CHECK(image_store_verify(&place.store, &entry, &err) == 0);
}

TEST(an_image_is_found_by_name_and_by_digest)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct err err = ERR_INIT;
    own_image_entry made = IMAGE_ENTRY_INIT, found = IMAGE_ENTRY_INIT, by_hex = IMAGE_ENTRY_INIT;
    own_image_entry none = IMAGE_ENTRY_INIT;
    own_json list = NULL;
    char digest[80];
    images_place_open(&place);
    images_make(&place, "data", "1", &made);
    CHECK(image_store_find(&place.store, "data", &found, &err) == 0);
    CHECK_TEXT(found.hex, made.hex);
    snprintf(digest, sizeof digest, "sha256:%s", made.hex);
    CHECK(image_store_find(&place.store, digest, &by_hex, &err) == 0);
    CHECK_TEXT(by_hex.name, "data");
    CHECK(image_store_list(&place.store, &list, &err) == 0);
    CHECK_INT(json_array_size(list), 1);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(list, 0), "digest")), digest);
    images_refused(image_store_find(&place.store, "dat", &none, &err), &err, "unknown image 'dat'");
    CHECK(strstr(err.hint, "did you mean 'data'"));
    digest[70] = digest[70] == '0' ? '1' : '0';
    images_refused(image_store_find(&place.store, digest, &none, &err), &err, "unknown image");
    images_refused(image_store_find(&place.store, "../lists", &none, &err), &err, "unknown image");
}

TEST(the_digest_is_of_the_content_without_times_and_compiled_python)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, b = IMAGE_ENTRY_INIT, c = IMAGE_ENTRY_INIT;
    own_image_entry d = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    images_file(build, "lib/x.py", "x = 1", 0644);
    images_finish(build, "a", &a);
    build = images_start(&place, NONE);
    images_file(build, "lib/__pycache__/x.cpython-313.pyc", "bytes", 0644);
    CHECK(image_build_dir(build, STR("lib"), 12345, &err) == 0);
    images_file(build, "lib/x.py", "x = 1", 0600);
    images_finish(build, "b", &b);
    CHECK_TEXT(a.hex, b.hex);
    build = images_start(&place, NONE);
    images_file(build, "lib/x.py", "x = 1", 0755);
    images_finish(build, "c", &c);
    CHECK(strcmp(a.hex, c.hex) != 0);
    build = images_start(&place, NONE);
    images_file(build, "lib/x.pyc", "bytes", 0644);
    images_file(build, "lib/x.py", "x = 1", 0644);
    images_finish(build, "d", &d);
    CHECK(strcmp(a.hex, d.hex) != 0);
}

TEST(base_and_environment_are_part_of_the_digest)
{
    struct images_place place = IMAGES_PLACE_INIT;
    static const char *const facts[] = { "{\"base\":\"none\"}", "{\"base\":\"host\"}",
                                         "{\"base\":\"none\",\"env\":{\"A\":\"1\"}}",
                                         "{\"base\":\"none\",\"env\":{},\"source\":\"other\"}" };
    char hex[4][IMAGE_HEX_ROOM];
    struct err err = ERR_INIT;
    images_place_open(&place);
    for (size_t i = 0; i < 4; i++) {
        own_image_entry entry = IMAGE_ENTRY_INIT;
        own_json json = json_loads(facts[i], 0, NULL);
        struct image_build *build = images_start(&place, NONE);
        images_file(build, "x", "1", 0644);
        CHECK(image_build_finish(build, "x", json, &entry, &err) == 0);
        CHECK(entry.on_host == (i == 1));
        image_build_close(build);
        memcpy(hex[i], entry.hex, IMAGE_HEX_ROOM);
    }
    CHECK(strcmp(hex[0], hex[1]) != 0 && strcmp(hex[0], hex[2]) != 0);
    CHECK_TEXT(hex[3], hex[0]);
}

TEST(equal_files_of_two_images_are_stored_once)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, b = IMAGE_ENTRY_INIT;
    images_place_open(&place);
    images_make(&place, "a", "shared", &a);
    struct image_build *build = images_start(&place, &a);
    images_file(build, "more", "own", 0644);
    images_file(build, "again", "shared", 0644);
    images_finish(build, "b", &b);
    CHECK_INT(images_count(&place, "files"), 2);
    CHECK_INT(images_count(&place, "trees"), 1 + 3);
    CHECK_TEXT(json_string_value(json_object_get(b.manifest, "base")), "none");
    struct err err = ERR_INIT;
    CHECK(image_store_verify(&place.store, &b, &err) == 0);
}

TEST(a_large_file_is_hashed_and_shared_like_a_small_one)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, b = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    size_t len = 3 * IMAGE_BUILD_BYTES + 17;
    own_str text = buf_alloc(len + 1);
    memset(text, 'x', len);
    text[len] = 0;
    images_place_open(&place);
    images_make(&place, "a", text, &a);
    CHECK(image_store_verify(&place.store, &a, &err) == 0);
    struct image_build *build = images_start(&place, NONE);
    images_file(build, "etc/motd", text, 0644);
    images_file(build, "etc/motd2", text, 0644);
    images_finish(build, "b", &b);
    CHECK_INT(images_count(&place, "files"), 1);
}

TEST(a_later_entry_replaces_an_earlier_one)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    struct stat st;
    char path[200], text[256];
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    images_file(build, "a/b/c", "1", 0644);
    images_file(build, "a/b/c", "22", 0644);
    CHECK(image_build_dir(build, STR("a/b"), 5, &err) == 0); /* stays */
    images_file(build, "f/g", "gone", 0644);
    images_file(build, "f", "now a file", 0644);
    CHECK(image_build_symlink(build, STR("l"), STR("a"), &err) == 0);
    CHECK(image_build_dir(build, STR("l"), 5, &err) == 0); /* a folder instead of a link */
    images_file(build, "w/x", "1", 0644);
    images_file(build, "w/y", "1", 0644);
    CHECK(image_build_remove(build, STR("w/x"), &err) == 0);
    CHECK(image_build_remove(build, STR("no/such"), &err) == 0);
    images_file(build, "o/p/q", "1", 0644);
    CHECK(image_build_empty(build, STR("o"), &err) == 0);
    images_finish(build, "x", &entry);
    snprintf(path, sizeof path, "trees/%s/a/b/c", entry.hex);
    images_read(&place, path, text);
    CHECK_TEXT(text, "22");
    snprintf(path, sizeof path, "trees/%s/l", entry.hex);
    CHECK(images_stat(&place, path, &st) && S_ISDIR(st.st_mode));
    snprintf(path, sizeof path, "trees/%s/o/p", entry.hex);
    CHECK(!images_stat(&place, path, &st));
    CHECK_INT(images_count(&place, "trees"), 3);
    CHECK_INT(images_count(&place, "files"), 3); /* what was replaced is gone */
}

TEST(paths_that_lead_elsewhere_are_refused)
{
    static const char *const paths[] = { "",      "/etc/x", "../x", "a/../../x", "a//b", "./a",
                                         "a/./b", "a/",     "..",   "." };
    struct images_place place = IMAGES_PLACE_INIT;
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    for (size_t i = 0; i < array_len(paths); i++) {
        struct err err = ERR_INIT;
        images_refused(image_build_dir(build, str_of(paths[i]), 0, &err), &err, "path '");
    }
    struct err err = ERR_INIT;
    images_refused(image_build_dir(build, STR("a\0b"), 0, &err), &err, "NUL");
    char deep[2 * 130 + 1] = "";
    for (size_t i = 0; i < 130; i++)
        memcpy(deep + 2 * i, "a/", 3);
    deep[2 * 130 - 1] = 0;
    images_refused(image_build_dir(build, str_of(deep), 0, &err), &err, "too deep");
    image_build_close(build);
}

TEST(no_entry_goes_through_a_link)
{
    struct images_place place = IMAGES_PLACE_INIT;
    struct err err = ERR_INIT;
    char outside[80];
    struct str text = STR("x");
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    snprintf(outside, sizeof outside, "%s/outside", place.path);
    CHECK(mkdirat(place.state, "outside", 0755) == 0);
    CHECK(image_build_symlink(build, STR("way"), str_of(outside), &err) == 0);
    CHECK(image_build_symlink(build, STR("up"), STR(".."), &err) == 0);
    images_file(build, "etc/passwd", "x", 0644);
    images_refused(image_build_dir(build, STR("way/in"), 0, &err), &err, "through a link");
    images_refused(image_build_dir(build, STR("up/in/deep"), 0, &err), &err, "through a link");
    images_refused(image_build_dir(build, STR("etc/passwd/in"), 0, &err), &err, "through a link");
    images_refused(image_build_symlink(build, STR("way/in"), text, &err), &err, "through a link");
    images_refused(image_build_link(build, STR("hard"), STR("way/in"), &err), &err, "hard link");
    images_refused(image_build_link(build, STR("hard"), STR("way"), &err), &err, "hard link");
    images_refused(image_build_remove(build, STR("way/in"), &err), &err, "through a link");
    image_build_close(build);
    CHECK(faccessat(place.state, "outside/in", F_OK, 0) < 0);
}

TEST(a_folder_of_the_disk_is_taken_and_nothing_special_with_it)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    int stage;
    char text[256], path[200];
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    CHECK(image_build_stage(build, &stage, &err) == 0);
    CHECK(mkdirat(stage, "lib", 0700) == 0);
    own_fd fd = openat(stage, "lib/a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, "taken", 5) == 5);
    CHECK(symlinkat("a", stage, "lib/b") == 0);
    CHECK(image_build_take(build, stage, STR("usr/local"), 42, &err) == 0);
    CHECK(write(fd, " and changed", 12) == 12); /* a writer that stays changes nothing */
    CHECK(mkfifoat(stage, "pipe", 0600) == 0);
    images_refused(image_build_take(build, stage, STR("again"), 42, &err), &err, "pipe");
    CHECK(image_build_remove(build, STR("again"), &err) == 0);
    images_finish(build, "x", &entry);
    snprintf(path, sizeof path, "trees/%s/usr/local/lib/a", entry.hex);
    images_read(&place, path, text);
    CHECK_TEXT(text, "taken");
    CHECK_INT(images_count(&place, "work"), 0);
}

TEST(names_of_images_are_checked)
{
    CHECK(image_store_name_valid("data"));
    CHECK(image_store_name_valid("0.a_b-c"));
    static const char *const bad[] = { "", "host", "Data", "-a", ".a", "a/b", "a@b", "a b",
        "\xc3\xa4", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    for (size_t i = 0; i < array_len(bad); i++)
        CHECK(!image_store_name_valid(bad[i]));
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    images_place_open(&place);
    struct image_build *build = images_start(&place, NONE);
    images_refused(image_build_finish(build, "a/b", NULL, &entry, &err), &err,
                   "cannot be the name");
    image_build_close(build);
    CHECK_INT(images_count(&place, "names"), 0);
    CHECK_INT(images_count(&place, "manifests"), 0);
}

TEST(the_digest_of_an_image_on_the_host_changes_with_the_host)
{
    struct image_entry entry = { .hex = "aa" };
    char a[72], b[72], c[72];
    memset(entry.hex, 'a', 64);
    image_store_digest(&entry, "sha256:1", a);
    CHECK(strncmp(a, "sha256:aaaa", 11) == 0 && strlen(a) == 71);
    entry.on_host = true;
    image_store_digest(&entry, "sha256:1", b);
    image_store_digest(&entry, "sha256:2", c);
    CHECK(strcmp(a, b) != 0 && strcmp(b, c) != 0 && strlen(c) == 71);
}
