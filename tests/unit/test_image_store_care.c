/* The store of images under attack and misfortune: killed builds, changed files, full links, and
 * what prune removes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "images_place.h"

/* As the next command does. */
static void open_again(struct images_place *place)
{
    struct err err = ERR_INIT;
    image_store_close(&place->store);
    image_store_open(place->state, /* make= */ true, &place->store, &err);
    CHECK_TEXT(err.text, "");
}

static void nothing_is_left(const struct images_place *place)
{
    static const char *const folders[] = {
        "work", "files", "trees", "lists", "manifests", "names"
    };
    for (size_t i = 0; i < array_len(folders); i++)
        CHECK_INT(images_count(place, folders[i]), 0);
}

TEST(what_a_killed_build_made_is_swept_by_the_next_open)
{
    struct images_place place = IMAGES_PLACE_INIT;
    int status;
    images_place_open(&place);
    pid_t child = fork();
    if (child == 0) {
        struct image_build *build = images_start(&place, NULL);
        images_file(build, "a/b", "1", 0644);
        images_file(build, "c", "2", 0644);
        images_file(build, "c", "3", 0644);
        raise(SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(images_count(&place, "work") > 0);
    CHECK_INT(images_count(&place, "files"), 3);
    open_again(&place);
    nothing_is_left(&place);
}

TEST(a_build_that_was_killed_before_its_manifest_is_no_image)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT, found = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    char path[200], key[HASH_HEX_ROOM], line[300];
    images_place_open(&place);
    images_make(&place, "x", "1", &entry);
    snprintf(path, sizeof path, "manifests/%s.json", entry.hex);
    CHECK(unlinkat(place.store.dirfd, path, 0) == 0 &&
          unlinkat(place.store.dirfd, "names/x", 0) == 0);
    images_refused(image_store_find(&place.store, "x", &found, &err), &err, "unknown image");
    hash_hex(STR("1"), key);
    snprintf(line, sizeof line, "%.2s/%s.444.1000\n../names/../lock\n", key, key);
    CHECK(mkdirat(place.store.dirfd, "work/0123456789abcdef", 0700) == 0);
    CHECK(io_write_text(place.store.dirfd, "lock", "") >= 0);
    own_fd log = openat(place.store.dirfd, "work/0123456789abcdef/log",
                        O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(log >= 0 && io_write_all(log, line, strlen(line)) == 0);
    open_again(&place);
    nothing_is_left(&place);
    CHECK(faccessat(place.store.dirfd, "lock", F_OK, 0) == 0);
}

/* A dead build that was giving `entry` its name. */
static void leave_unnamed(const struct images_place *place, const struct image_entry *entry)
{
    char key[HASH_HEX_ROOM], line[300];
    hash_hex(STR("1"), key);
    snprintf(line, sizeof line, "%.2s/%s.444.1000\n", key, key);
    CHECK(mkdirat(place->store.dirfd, "work/0123456789abcdef", 0700) == 0);
    own_fd work = openat(place->store.dirfd, "work/0123456789abcdef", O_RDONLY | O_CLOEXEC);
    own_fd log = openat(work, "log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(log >= 0 && io_write_all(log, line, strlen(line)) == 0);
    own_fd mark = openat(work, "unnamed", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(mark >= 0 && io_write_all(mark, entry->hex, strlen(entry->hex)) == 0);
}

TEST(a_build_that_was_killed_before_its_name_is_no_image)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT, found = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    images_place_open(&place);
    images_make(&place, "x", "1", &entry);
    leave_unnamed(&place, &entry);
    open_again(&place);
    CHECK(image_store_find(&place.store, "x", &found, &err) == 0); /* it has its name */
    CHECK_INT(images_count(&place, "work"), 0);
    leave_unnamed(&place, &entry);
    CHECK(unlinkat(place.store.dirfd, "names/x", 0) == 0);
    open_again(&place);
    nothing_is_left(&place);
}

TEST(a_build_that_lives_is_not_swept)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    images_place_open(&place);
    struct image_build *build = images_start(&place, NULL);
    images_file(build, "a", "1", 0644);
    struct image_store other = IMAGE_STORE_INIT;
    CHECK(image_store_open(place.state, /* make= */ true, &other, &err) == 0);
    images_file(build, "b", "2", 0644);
    images_finish(build, "x", &entry);
    CHECK(image_store_verify(&other, &entry, &err) == 0);
    image_store_close(&other);
}

TEST(builds_begin_while_others_sweep)
{
    struct images_place place = IMAGES_PLACE_INIT;
    int status;
    images_place_open(&place);
    pid_t sweeper = fork();
    if (sweeper == 0) {
        for (struct err err = ERR_INIT;;) {
            own_image_store store = IMAGE_STORE_INIT;
            if (image_store_open(place.state, /* make= */ true, &store, &err) < 0)
                _exit(1);
        }
    }
    for (int i = 0; i < 3000; i++) {
        struct image_build *build = NULL;
        struct err err = ERR_INIT;
        int rc = image_build_start(&place.store, NULL, &build, &err);
        CHECK_TEXT(err.text, "");
        image_build_close(rc < 0 ? NULL : build);
        if (rc < 0)
            break;
    }
    CHECK(kill(sweeper, SIGKILL) == 0 && waitpid(sweeper, &status, 0) == sweeper);
    CHECK(WIFSIGNALED(status));
    nothing_is_left(&place);
}

TEST(a_build_that_fails_leaves_nothing)
{
    struct images_place place = IMAGES_PLACE_INIT;
    images_place_open(&place);
    struct image_build *build = images_start(&place, NULL);
    images_file(build, "a/b/c", "1", 0644);
    image_build_close(build);
    image_build_close(NULL);
    nothing_is_left(&place);
}

TEST(a_file_that_no_image_has_is_not_trusted)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    char hash[HASH_HEX_ROOM], path[160];
    images_place_open(&place);
    hash_hex(STR("good"), hash);
    snprintf(path, sizeof path, "files/%.2s", hash);
    CHECK(mkdirat(place.store.dirfd, path, 0700) == 0);
    snprintf(path, sizeof path, "files/%.2s/%s.444.1000", hash, hash);
    own_fd fd = openat(place.store.dirfd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    CHECK(fd >= 0 && io_write_all(fd, "evil", 4) == 0);
    const struct timespec at[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    CHECK(futimens(fd, at) == 0);
    images_make(&place, "x", "good", &entry);
    CHECK(image_store_verify(&place.store, &entry, &err) == 0);
    CHECK_INT(images_count(&place, "files"), 1);
}

TEST(a_file_with_all_its_links_gets_a_second_copy)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    char path[16];
    images_place_open(&place);
    struct image_build *build = images_start(&place, NULL);
    build->links_max = 4; /* three names in the tree */
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%d", i);
        images_file(build, path, "same", 0644);
    }
    images_finish(build, "x", &entry);
    CHECK_INT(images_count(&place, "files"), 4);
    CHECK(image_store_verify(&place.store, &entry, &err) == 0);
}

/* --- verify --- */

static void spoil(const struct images_place *place, const char *hex, const char *name,
                  const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "trees/%s/%s", hex, name);
    CHECK(fchmodat(place->store.dirfd, path, 0644, 0) == 0);
    CHECK(io_write_text(place->store.dirfd, path, text) >= 0);
    CHECK(fchmodat(place->store.dirfd, path, 0444, 0) == 0);
}

TEST(a_changed_file_is_found_and_every_image_with_it_refused_until_it_is_made_again)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, b = IMAGE_ENTRY_INIT, c = IMAGE_ENTRY_INIT;
    own_image_entry found = IMAGE_ENTRY_INIT, again = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    images_place_open(&place);
    images_make(&place, "a", "good", &a);
    struct image_build *build = images_start(&place, NULL);
    images_file(build, "elsewhere", "good", 0644);
    images_finish(build, "b", &b);
    images_make(&place, "c", "other", &c);
    spoil(&place, a.hex, "etc/motd", "evil");
    images_refused(image_store_verify(&place.store, &a, &err), &err, "'etc/motd' was changed");
    images_refused(image_store_find(&place.store, "a", &found, &err), &err, "refused");
    images_refused(image_store_find(&place.store, "b", &found, &err), &err, "'elsewhere'");
    CHECK(image_store_find(&place.store, "c", &found, &err) == 0);
    images_make(&place, "a", "good", &again);
    CHECK_TEXT(again.hex, a.hex);
    image_entry_done(&found);
    CHECK(image_store_find(&place.store, "a", &found, &err) == 0);
    CHECK(image_store_verify(&place.store, &found, &err) == 0);
    CHECK_INT(images_count(&place, "work"), 0);
}

static void verify_finds(const char *what, void (*change)(int tree), const char *words)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    char path[100];
    images_place_open(&place);
    struct image_build *build = images_start(&place, NULL);
    images_file(build, "bin/tool", "1", 0755);
    images_file(build, "bin/other", "2", 0644);
    CHECK(image_build_symlink(build, STR("link"), STR("bin"), &err) == 0);
    images_finish(build, what, &entry);
    snprintf(path, sizeof path, "trees/%s", entry.hex);
    own_fd tree = openat(place.store.dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    change(tree);
    images_refused(image_store_verify(&place.store, &entry, &err), &err, words);
}

static void add_one(int tree)
{
    CHECK(symlinkat("x", tree, "bin/added") == 0);
}
static void remove_one(int tree)
{
    CHECK(unlinkat(tree, "bin/other", 0) == 0);
}
static void remove_last(int tree)
{
    CHECK(unlinkat(tree, "link", 0) == 0);
}
static void redirect(int tree)
{
    CHECK(unlinkat(tree, "link", 0) == 0 && symlinkat("/", tree, "link") == 0);
}
static void permit(int tree)
{
    CHECK(fchmodat(tree, "bin/other", 04755, 0) == 0);
}
static void replace(int tree)
{
    CHECK(unlinkat(tree, "bin/other", 0) == 0 && mkfifoat(tree, "bin/other", 0444) == 0);
}

TEST(verify_finds_an_added_entry)
{
    verify_finds("x", add_one, "'bin/added' was added");
}
TEST(verify_finds_a_missing_entry)
{
    verify_finds("x", remove_one, "'bin/other' is missing");
}
TEST(verify_finds_a_missing_entry_at_the_end)
{
    verify_finds("x", remove_last, "'link' is missing");
}
TEST(verify_finds_a_link_that_leads_elsewhere)
{
    verify_finds("x", redirect, "'link' leads elsewhere");
}
TEST(verify_finds_other_permissions)
{
    verify_finds("x", permit, "'bin/other' has other permissions");
}
TEST(verify_finds_another_kind_of_file)
{
    verify_finds("x", replace, "'bin/other' is another kind of file");
}

TEST(a_changed_list_is_found)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    char path[100], hash[HASH_HEX_ROOM];
    own_buf text = BUF_INIT(1000);
    images_place_open(&place);
    images_make(&place, "x", "good", &entry);
    spoil(&place, entry.hex, "etc/motd", "evil");
    hash_hex(STR("evil"), hash);
    buf_printf(&text, "d 0 etc\nf %s 444 4 1000 etc/motd\n", hash);
    snprintf(path, sizeof path, "lists/%s", entry.hex);
    CHECK(io_write_text(place.store.dirfd, path, text.at) >= 0);
    images_refused(image_store_verify(&place.store, &entry, &err), &err, "another list");
}

/* --- prune --- */

TEST(prune_removes_what_no_name_leads_to)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, b = IMAGE_ENTRY_INIT, found = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    int64_t bytes = 0, images = 0;
    images_place_open(&place);
    images_make(&place, "a", "1", &a);
    struct image_build *build = images_start(&place, &a);
    images_file(build, "more", "2", 0644);
    images_finish(build, "b", &b);
    CHECK(image_store_remove(&place.store, "a", &err) == 0);
    CHECK(image_store_prune(&place.store, &bytes, &images, &err) == 0);
    CHECK_INT(images, 1);
    CHECK_INT(images_count(&place, "trees"), 2);
    CHECK_INT(images_count(&place, "files"), 2); /* b has both */
    CHECK(image_store_verify(&place.store, &b, &err) == 0);
    CHECK(image_store_remove(&place.store, "b", &err) == 0);
    images_refused(image_store_remove(&place.store, "b", &err), &err, "unknown image");
    CHECK(image_store_prune(&place.store, &bytes, &images, &err) == 0);
    CHECK(bytes > 0);
    nothing_is_left(&place);
    images_refused(image_store_find(&place.store, "b", &found, &err), &err, "unknown image");
}

TEST(prune_leaves_what_is_in_use_and_waits_for_builds)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    int64_t bytes = 0, images = 0;
    int hold;
    images_place_open(&place);
    images_make(&place, "a", "1", &a);
    CHECK(image_store_hold(&place.store, &a, &hold, &err) == 0);
    CHECK(image_store_remove(&place.store, "a", &err) == 0);
    CHECK(image_store_prune(&place.store, &bytes, &images, &err) == 0);
    CHECK_INT(images, 0);
    CHECK_INT(images_count(&place, "trees"), 1);
    close(hold);
    struct image_build *build = images_start(&place, NULL);
    CHECK(image_store_prune(&place.store, &bytes, &images, &err) < 0);
    CHECK_INT(err.kind, ERR_BUSY);
    image_build_close(build);
    err = ERR_INIT;
    CHECK(image_store_prune(&place.store, &bytes, &images, &err) == 0);
    CHECK_INT(images, 1);
    nothing_is_left(&place);
    CHECK(image_store_hold(&place.store, &a, &hold, &err) < 0);
}

TEST(a_killed_prune_is_gone_on_with)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT;
    char path[100];
    images_place_open(&place);
    images_make(&place, "a", "1", &a);
    CHECK(unlinkat(place.store.dirfd, "names/a", 0) == 0);
    snprintf(path, sizeof path, "manifests/%s.json", a.hex);
    CHECK(unlinkat(place.store.dirfd, path, 0) == 0);
    CHECK(mkdirat(place.store.dirfd, "work/0123456789abcdef", 0700) == 0);
    own_fd mark = openat(place.store.dirfd, "work/0123456789abcdef/sweep",
                         O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(mark >= 0);
    open_again(&place);
    nothing_is_left(&place);
}

/* --- what is in the store's own files --- */

TEST(a_manifest_or_name_that_was_tampered_with_is_no_image)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, found = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    own_json list = NULL;
    char path[100];
    images_place_open(&place);
    images_make(&place, "a", "1", &a);
    own_fd fd = openat(place.store.dirfd, "names/b", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && io_write_all(fd, "../../etc", 9) == 0);
    images_refused(image_store_find(&place.store, "b", &found, &err), &err, "unknown image");
    snprintf(path, sizeof path, "manifests/%s.json", a.hex);
    CHECK(io_write_text(place.store.dirfd, path, "{\"schema\":1}") >= 0);
    CHECK(image_store_find(&place.store, "a", &found, &err) < 0);
    CHECK_INT(err.kind, ERR_HOST);
    CHECK(image_store_list(&place.store, &list, &err) == 0);
    CHECK_INT(json_array_size(list), 0);
}

TEST(the_space_of_images_is_their_own_or_shared)
{
    struct images_place place = IMAGES_PLACE_INIT;
    own_image_entry a = IMAGE_ENTRY_INIT, b = IMAGE_ENTRY_INIT;
    struct err err = ERR_INIT;
    own_json usage = NULL;
    images_place_open(&place);
    images_make(&place, "a", "1", &a);
    struct image_build *build = images_start(&place, &a);
    images_file(build, "etc/more", "2", 0644);
    images_file(build, "etc/more2", "2", 0644);
    images_finish(build, "b", &b);
    CHECK(image_store_usage(&place.store, &usage, &err) == 0);
    const json_t *rows = json_object_get(usage, "images");
    CHECK_INT(json_array_size(rows), 2);
    json_int_t shared = json_integer_value(
        json_object_get(json_array_get(rows, 0), "shared_bytes"));
    CHECK(shared > 0);
    CHECK_INT(json_integer_value(json_object_get(json_array_get(rows, 1), "shared_bytes")), shared);
    CHECK_INT(json_integer_value(json_object_get(usage, "total_bytes")), 2 * shared);
    CHECK_INT(json_integer_value(json_object_get(usage, "unused_bytes")), 0);
}
