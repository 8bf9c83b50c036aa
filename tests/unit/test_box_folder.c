/* Boxes whose /workspace is a folder of the caller, and files of the caller in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/io.h"
#include "base/own.h"
#include "box_hall.h"
#include "check.h"

#define OWNER 61008 /* of the folder, where root runs cupel */

static struct hall hall;
static char out[65536];

static void give(const char *path)
{
    if (geteuid() == 0)
        CHECK_INT(lchown(hall_path(&hall, path), OWNER, OWNER), 0);
}

static bool begin(bool ordinary)
{
    hall_begin(&hall, ordinary);
    hall_file(&hall, "project/main.py", "print(1)\n", 0600);
    hall_file(&hall, "project/sub/deep", "deep\n", 0644);
    hall_file(&hall, "project/.env", "KEY=secret\n", 0600);
    hall_file(&hall, "project/.git/config", "config\n", 0644);
    hall_file(&hall, "project/gone", "gone\n", 0644);
    static const char *const all[] = {
        "project",      "project/main.py", "project/sub",         "project/sub/deep",
        "project/.env", "project/.git",    "project/.git/config", "project/gone"
    };
    CHECK_INT(chmod(hall_path(&hall, "project"), 0700), 0);
    for (size_t i = 0; i < array_len(all); i++)
        give(all[i]);
    return true;
}

static struct box_call create_with(enum box_folder_mode mode)
{
    struct box_call create = hall_create((struct box_image){ 0 });
    create.box = BOX_ATTACHED;
    create.create.folder.mode = mode;
    return create;
}

/* A command in a box with the folder and a list of places, `len` bytes. */
static struct box_news run_with(enum box_folder_mode mode, const char *list, size_t len,
                                const char *command)
{
    struct box_call create = create_with(mode);
    own_fd places = len ? memfd_create("places", MFD_CLOEXEC) : -1;
    CHECK(!len || (places >= 0 && io_write_all(places, list, len) == 0));
    create.create.folder.places = len > 0;
    return hall_run(&hall, &create, places, command, out, sizeof out);
}

#define WITH(mode, list, command) run_with(mode, list, sizeof(list) - 1, command)

static void must(struct box_news news, const char *want)
{
    if (news.kind != BOX_NEWS_STARTED)
        check_failed(__FILE__, __LINE__, "step %u: %s", news.step, strerror(news.error));
    CHECK_TEXT(out, want);
}

static const char *content(const char *path)
{
    static char text[256];
    memset(text, 0, sizeof text);
    own_fd fd = open(hall_path(&hall, path), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "none";
    CHECK(read(fd, text, sizeof text - 1) >= 0);
    return text;
}

/* The names and kinds of a layer, sorted. */
static char layer[4096];

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list_layer(const struct hall *in, uint32_t box)
{
    static const char *const kinds[] = { "file", "dir", "link", "other", "gone", "fresh" };
    static char lines[64][64];
    static union {
        char bytes[sizeof(struct box_porter_answer) + BOX_PORTER_PART];
        struct box_porter_answer word;
    } got;
    struct box_porter_call call = { .op = BOX_PORTER_LIST, .within_ns = 5000000000 };
    own_fd sock = hall_porter(in, box, /* layer= */ true);
    size_t count = 0;
    CHECK_INT(write(sock, &call, sizeof call), sizeof call);
    do {
        ssize_t n = read(sock, &got, sizeof got);
        CHECK(n >= (ssize_t)sizeof got.word && got.word.error == 0 && got.word.cut == 0);
        for (size_t at = sizeof got.word; at < (size_t)n && count < array_len(lines);) {
            struct box_porter_entry entry;
            memcpy(&entry, got.bytes + at, sizeof entry);
            snprintf(lines[count++], sizeof lines[0], "%.*s %s\n", (int)entry.path_len,
                     got.bytes + at + sizeof entry, kinds[entry.type]);
            at += BOX_PORTER_ENTRY_ROOM(entry.path_len);
        }
    } while (!got.word.last);
    qsort(lines, count, sizeof lines[0], by_text);
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(layer + len, sizeof layer - len, "%s", lines[i]);
}

TEST_BOTH(changes_to_a_folder_stay_in_the_layer_of_the_box)
{
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ false);
    if (!hall_open(&hall))
        return;
    hall.look = list_layer;
    must(WITH(BOX_FOLDER_OVERLAY, "",
              "cd /workspace; stat -c '%U %a' . main.py; cat main.py sub/deep\n"
              "echo changed >main.py; echo new >fresh; rm gone; rm -r sub; mkdir sub\n"
              "echo x >sub/y; mv .git/config .git/other; ls -A . sub; cat main.py"),
         "user 700\nuser 600\nprint(1)\ndeep\n.:\n.env\n.git\nfresh\nmain.py\nsub\n\nsub:\ny\n"
         "changed\n");
    CHECK_TEXT(layer, ".git dir\n.git/config gone\n.git/other file\nfresh file\ngone gone\n"
                      "main.py file\nsub fresh\nsub/y file\n");
    CHECK_TEXT(content("project/main.py"), "print(1)\n");
    CHECK_TEXT(content("project/gone"), "gone\n");
    CHECK_TEXT(content("project/sub/deep"), "deep\n");
    CHECK_TEXT(content("project/.git/config"), "config\n");
    CHECK_TEXT(content("project/fresh"), "none");
    hall_end(&hall);
}

TEST_BOTH(a_read_only_folder_cannot_be_written)
{
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ true);
    if (!hall_open(&hall))
        return;
    must(WITH(BOX_FOLDER_READ, "", "cd /workspace; cat main.py; echo x >main.py; touch new"),
         "print(1)\n/bin/sh: 1: cannot create main.py: Read-only file system\n"
         "touch: cannot touch 'new': Read-only file system\n");
    hall_end(&hall);
}

TEST_BOTH(a_folder_is_written_through_and_stays_its_owners)
{
    struct stat st;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ true);
    if (!hall_open(&hall))
        return;
    must(WITH(BOX_FOLDER_WRITE, "",
              "cd /workspace; echo changed >main.py; echo new >fresh; rm gone; ls -A\n"
              "stat -c '%U' ."),
         ".env\n.git\nfresh\nmain.py\nsub\nuser\n");
    CHECK_TEXT(content("project/main.py"), "changed\n");
    CHECK_TEXT(content("project/gone"), "none");
    CHECK_INT(stat(hall_path(&hall, "project/fresh"), &st), 0);
    CHECK_INT(st.st_uid, ordinary ? (int)geteuid() : OWNER);
    hall_end(&hall);
}

TEST_BOTH(code_makes_no_setuid_file_in_the_folder_of_the_caller)
{
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ true);
    if (!hall_open(&hall))
        return;
    must(WITH(BOX_FOLDER_WRITE, "",
              "cd /workspace; chmod u+s main.py && echo bad; chmod 2755 main.py && echo bad\n"
              "python3 -c 'import os\n"
              "for mode in 0o4755, 0o2755:\n"
              "    for call in (lambda: os.open(\"n\", os.O_CREAT, mode), lambda:\n"
              "            os.mkfifo(\"n\", mode), lambda:\n"
              "            os.fchmod(os.open(\"main.py\", 0), mode)):\n"
              "        try: call(); print(\"bad\")\n"
              "        except PermissionError: print(\"fine\")' 2>&1 | sort | uniq -c\n"
              "chmod 755 main.py && echo good >new && cat new"),
         "      6 fine\ngood\n"
         "chmod: changing permissions of 'main.py': Operation not permitted\n"
         "chmod: changing permissions of 'main.py': Operation not permitted\n");
    hall_end(&hall);
}

TEST_BOTH(a_folder_attached_for_reading_is_never_written_through)
{
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ false);
    if (!hall_open(&hall))
        return;
    struct box_news news = WITH(BOX_FOLDER_WRITE, "", "true");
    CHECK(news.kind == BOX_NEWS_FAILED && news.step == BOX_STEP_FOLDER && news.error == EROFS);
    hall_end(&hall);
}

TEST_BOTH(another_box_cannot_show_the_folder)
{
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ false);
    if (!hall_open(&hall))
        return;
    struct box_call create = create_with(BOX_FOLDER_OVERLAY);
    create.box = 0;
    struct box_news news = hall_run(&hall, &create, -1, "true", out, sizeof out);
    CHECK(news.kind == BOX_NEWS_FAILED && news.step == BOX_STEP_FOLDER && news.error == EPERM);
    create = hall_create((struct box_image){ 0 });
    must(hall_run(&hall, &create, -1, "ls -A /workspace; ls /mnt /media /srv 2>/dev/null", out,
                  sizeof out),
         "/mnt:\ndata\n\n/srv:\n");
    hall_end(&hall);
}

TEST_BOTH(hidden_and_read_only_places_hold_in_every_mode)
{
    static const char list[] = "h.env\0h.git\0hmissing/x\0rmain.py";
    static const enum box_folder_mode modes[] = { BOX_FOLDER_OVERLAY, BOX_FOLDER_READ,
                                                  BOX_FOLDER_WRITE };
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ true);
    if (!hall_open(&hall))
        return;
    for (size_t i = 0; i < array_len(modes); i++) {
        struct box_news news = run_with(modes[i], list, sizeof list,
                                        "cd /workspace; cat .env; ls -A .git; cat main.py\n"
                                        "echo x >main.py; echo x >.env; touch .git/x; rm -rf .git\n"
                                        "mv .env e; chmod 777 .env .git; ln .env l; cat .env\n"
                                        "mv main.py sub; cat sub/main.py");
        CHECK_INT(news.kind, BOX_NEWS_STARTED);
        CHECK(strncmp(out, "print(1)\n/bin/sh", 16) == 0 && !strstr(out, "secret"));
        CHECK_TEXT(content("project/.env"), "KEY=secret\n");
        CHECK_TEXT(content("project/.git/config"), "config\n");
        CHECK_TEXT(content("project/main.py"), "print(1)\n");
    }
    hall_end(&hall);
}

TEST_BOTH(links_never_lead_a_place_out_of_the_folder)
{
    (void)ordinary;
    hall_link(&hall, "/etc/passwd", "project/outside");
    hall_link(&hall, "../../../etc", "project/above");
    hall_link(&hall, "main.py", "project/inside");
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ false);
    if (!hall_open(&hall))
        return;
    must(WITH(BOX_FOLDER_OVERLAY, "houtside\0habove/passwd\0hinside\0",
              "cd /workspace; head -c 4 /etc/passwd; cat main.py inside"),
         "root");
    static const char *const bad[] = { "h/etc", "h..", "ha/../b", "hx", "q.env", "" };
    for (size_t i = 0; i < array_len(bad); i++) {
        size_t len = strlen(bad[i]) + (strcmp(bad[i], "hx") != 0); /* hx: without its NUL */
        struct box_news news = run_with(BOX_FOLDER_OVERLAY, bad[i], len, "true");
        CHECK(news.kind == BOX_NEWS_FAILED && news.step == BOX_STEP_PLACES);
    }
    hall_end(&hall);
}

TEST_BOTH(files_of_the_caller_appear_by_reference)
{
    (void)ordinary;
    hall_file(&hall, "large", "a large file\n", 0600);
    hall_file(&hall, "other", "another\n", 0600);
    give("large");
    give("other");
    hall_attach(&hall, "large", BOX_ATTACH_FILE, /* writable= */ true);
    hall_attach(&hall, "other", BOX_ATTACH_FILE, /* writable= */ false);
    if (!hall_open(&hall))
        return;
    must(WITH(BOX_FOLDER_NONE, "fdata/in/large\0fother\0",
              "cd /workspace; cat data/in/large other; stat -c %U data data/in data/in/large\n"
              "echo x >data/in/large; rm -f other; echo y >data/in/mine; cat data/in/mine"),
         "a large file\nanother\nuser\nuser\nuser\n"
         "y\n"
         "/bin/sh: 2: cannot create data/in/large: Read-only file system\n"
         "rm: cannot remove 'other': Device or resource busy\n");
    CHECK_TEXT(content("large"), "a large file\n");
    hall_end(&hall);
}

TEST_BOTH(other_folders_of_the_caller_appear_read_only_in_their_places)
{
    (void)ordinary;
    hall_attach(&hall, "project", BOX_ATTACH_TREE, /* writable= */ true);
    hall_attach(&hall, "project", BOX_ATTACH_TREE, /* writable= */ false);
    if (!hall_open(&hall))
        return;
    must(WITH(BOX_FOLDER_NONE, "din/tree\0hin/tree/main.py\0vopt/deep/place\0hsub\0",
              "wc -c <in/tree/main.py; test -s /opt/deep/place/main.py && "
              "echo there; ls /opt/deep/place/sub | wc -l; ls /opt/deep\n"
              "echo x >in/tree/new; echo x >/opt/deep/place/new; mkdir /opt/mine in/mine\n"
              "ls -d in/mine"),
         "0\nthere\n0\nplace\nin/mine\n"
         "/bin/sh: 2: cannot create in/tree/new: Read-only file system\n"
         "/bin/sh: 2: cannot create /opt/deep/place/new: Read-only file system\n"
         "mkdir: cannot create directory '/opt/mine': Read-only file system\n");
    hall_end(&hall);
}

TEST(a_folder_with_mounts_below_it_is_refused)
{
    struct err err = ERR_INIT;
    if (geteuid() != 0) {
        printf("# skipped: not root\n");
        return;
    }
    begin(/* ordinary= */ false);
    const char *sub = hall_path(&hall, "project/sub");
    CHECK_INT(mount("tmpfs", sub, "tmpfs", 0, NULL), 0);
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ false);
    int failed = box_broker_open(&hall.house, hall.attach, hall.attach_count, &err);
    CHECK_INT(umount2(sub, MNT_DETACH), 0);
    CHECK(failed && err.kind == ERR_INPUT && strstr(err.text, "mounted below"));
    hall_end(&hall);
}

TEST(what_is_attached_must_be_of_its_kind_and_few)
{
    struct err err = ERR_INIT;
    begin(/* ordinary= */ true);
    hall_attach(&hall, "project/main.py", BOX_ATTACH_DIR, /* writable= */ false);
    CHECK(box_broker_open(&hall.house, hall.attach, hall.attach_count, &err) < 0);
    CHECK(err.kind == ERR_INPUT && strstr(err.text, "not a folder"));
    hall.attach[1].kind = BOX_ATTACH_FILE;
    for (int i = 0; i < 1; i++)
        hall_attach(&hall, "project", BOX_ATTACH_FILE, /* writable= */ false);
    err = ERR_INIT;
    CHECK(box_broker_open(&hall.house, hall.attach, hall.attach_count, &err) < 0);
    CHECK(err.kind == ERR_INPUT && strstr(err.text, "not a regular file"));
    hall_end(&hall);
}

TEST(a_path_that_was_replaced_meanwhile_is_refused_to_an_ordinary_user)
{
    begin(/* ordinary= */ true);
    hall_attach(&hall, "project", BOX_ATTACH_DIR, /* writable= */ false);
    char was[512];
    snprintf(was, sizeof was, "%s", hall_path(&hall, "project"));
    struct err err = ERR_INIT;
    /* The path of a removed folder ends with " (deleted)"; one of that name stands for another. */
    hall_dir(&hall, "empty");
    hall.attach[1].fd = open(hall_path(&hall, "empty"), O_PATH | O_CLOEXEC);
    CHECK(hall.attach[1].fd >= 0 && rmdir(hall_path(&hall, "empty")) == 0);
    hall_dir(&hall, "empty (deleted)");
    struct box_news news;
    int fds[BOX_NEWS_FDS];
    int failed = box_broker_open(&hall.house, hall.attach, hall.attach_count, &err);
    if (!failed) /* the child that becomes the broker finds it */
        failed = box_receive(&hall.house, &news, fds, &err);
    CHECK(failed && err.kind == ERR_HOST && strstr(err.text, "replaced"));
    hall_end(&hall);
}
