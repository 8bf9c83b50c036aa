/* Snapshots of what is more than names and bytes: files with several names, extended
 * attributes, all bits of a mode; and how long a snapshot may take. */
#include "box/files/curator.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "check.h"
#include "curator_place.h"

#define NONE BOX_STATES

static void settle(void)
{
    nanosleep(&(struct timespec){ 0, CURATOR_SETTLED_NS + 10000000 }, NULL);
}

static int shell(const char *commands)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", commands, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static ino_t inode_of(const char *path)
{
    struct stat st;
    CHECK_INT(lstat(path, &st), 0);
    return st.st_ino;
}

static unsigned names_of(const char *path)
{
    struct stat st;
    CHECK_INT(lstat(path, &st), 0);
    return (unsigned)st.st_nlink;
}

static bool is_one(const char *one, const char *other)
{
    return inode_of(one) == inode_of(other);
}

static void check_group(void)
{
    CHECK(is_one("a", "b") && is_one("a", "sub/c") && names_of("a") == 3);
    CHECK(place_holds("a", "shared") && names_of("alone") == 1 && place_holds("alone", "shared"));
}

static void linked(struct place *place)
{
    place_write("a", "shared");
    CHECK(link("a", "b") == 0 && mkdir("sub", 0755) == 0 && link("a", "sub/c") == 0);
    place_write("alone", "shared");
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    own_fd held = open("b", O_RDWR | O_CLOEXEC);
    CHECK(held >= 0);
    ino_t inode = inode_of("b");
    /* Its bytes; one name less; the name of another file; one name more; none at all. */
    static const char *const changes[] = {
        "printf changed >b", "rm a", "rm a; cp b a", "rm b sub/c; ln alone b; ln alone sub/c",
        "ln a more", "rm -rf a sub; printf x >b", "rm -rf a b sub", "rm alone; ln a alone",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        CHECK_INT(shell(changes[i]), 0);
        CHECK_INT(place_restore(place, 0), 0);
        check_group();
        CHECK(access("more", F_OK) < 0);
        if (i < 2) { /* the file that is held open is the one that has the names */
            CHECK(inode_of("a") == inode);
        }
    }
    settle();
    CHECK(!place_snap(place, 1, 0).changed || place_snap(place, 2, 1).error == 0);
    CHECK_INT(shell("rm -rf *"), 0);
    CHECK_INT(place_restore(place, 1), 0);
    check_group();
}

TEST(curator_keeps_which_names_are_one_file)
{
    place_run(linked);
}

/* Two that were one and have the same bytes still are not one any more. */
static void parted(struct place *place)
{
    place_write("a", "same");
    CHECK_INT(link("a", "b"), 0);
    settle();
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK_INT(shell("cp -p b c && mv c b"), 0);
    struct box_porter_answer now = place_snap(place, 1, 0);
    CHECK(now.error == 0 && now.changed);
    CHECK_INT(shell("rm a b"), 0);
    CHECK_INT(place_restore(place, 1), 0);
    CHECK(!is_one("a", "b") && place_holds("b", "same"));
    CHECK_INT(place_restore(place, 0), 0);
    CHECK(is_one("a", "b"));
}

TEST(curator_keeps_that_two_files_are_two)
{
    place_run(parted);
}

static bool has_attr(const char *path, const char *name, const char *want)
{
    char value[64] = "";
    ssize_t len = getxattr(path, name, value, sizeof value - 1);
    return want ? len >= 0 && strcmp(value, want) == 0 : len < 0;
}

static int set_attr(const char *path, const char *name, const char *value)
{
    return setxattr(path, name, value, strlen(value), 0);
}

/* Set up, or false where this tmpfs has no attributes for users. */
static bool make_attrs(void)
{
    place_write("f", "file");
    place_write("closed", "file");
    CHECK_INT(mkdir("d", 0755), 0);
    if (set_attr("f", "user.k", "one") < 0) {
        printf("  this kernel's tmpfs has no user attributes\n");
        return false;
    }
    CHECK(set_attr("closed", "user.k", "hidden") == 0 && chmod("closed", 0) == 0);
    CHECK(set_attr("d", "user.k", "folder") == 0 && set_attr(".", "user.top", "top") == 0);
    return true;
}

static void check_attrs(void)
{
    struct stat st;
    CHECK(has_attr("f", "user.k", "one") && has_attr("f", "user.more", NULL));
    CHECK(has_attr("d", "user.k", "folder") && has_attr(".", "user.top", "top"));
    CHECK(stat("closed", &st) == 0 && (st.st_mode & 07777) == 0);
    CHECK(chmod("closed", 0600) == 0 && has_attr("closed", "user.k", "hidden"));
    CHECK_INT(chmod("closed", 0), 0);
}

static void attrs(struct place *place)
{
    if (!make_attrs())
        return;
    settle();
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK(set_attr("f", "user.k", "two") == 0 && set_attr("f", "user.more", "x") == 0);
    CHECK(removexattr("d", "user.k") == 0 && removexattr(".", "user.top") == 0);
    CHECK(chmod("closed", 0600) == 0 && set_attr("closed", "user.k", "seen") == 0);
    CHECK(place_snap(place, 1, 0).changed);
    CHECK_INT(place_restore(place, 0), 0);
    check_attrs();
    CHECK_INT(shell("rm -rf f closed d"), 0);
    CHECK_INT(place_restore(place, 0), 0);
    check_attrs();
    CHECK_INT(place_restore(place, 1), 0);
    CHECK(has_attr("f", "user.k", "two") && has_attr("d", "user.k", NULL));
}

TEST(curator_keeps_extended_attributes)
{
    place_run(attrs);
}

static void modes(struct place *place)
{
    static const mode_t all[] = { 0, 0200, 0444, 01644, 02755, 04711, 07777 };
    char name[16];
    struct stat st;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        snprintf(name, sizeof name, "m%zu", i);
        place_write(name, "x");
        CHECK_INT(chmod(name, all[i]), 0);
    }
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK_INT(shell("chmod 0600 m*; printf changed >m1; rm m2 m5"), 0);
    CHECK_INT(place_snap(place, 1, 0).error, 0);
    CHECK_INT(place_restore(place, 0), 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        snprintf(name, sizeof name, "m%zu", i);
        CHECK(lstat(name, &st) == 0 && (st.st_mode & 07777) == all[i] && st.st_size == 1);
    }
}

TEST(curator_keeps_every_bit_of_a_mode)
{
    place_run(modes);
}

/* From one snapshot to another: what fork does between two sessions. */
static void carry(struct place *place, uint32_t from, uint32_t to)
{
    const struct box_porter_call send = { .op = BOX_PORTER_SEND, .snapshot = from };
    const struct box_porter_call receive = { .op = BOX_PORTER_RECEIVE, .snapshot = to };
    int ends[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_INT(place_ask(place, &send, ends[0]).error, 0); /* small: it fits in the socket */
    CHECK_INT(place_ask(place, &receive, ends[1]).error, 0);
    close(ends[0]);
    close(ends[1]);
}

static void carried(struct place *place)
{
    place_write("a", "shared");
    CHECK(mkdir("sub", 0755) == 0 && link("a", "sub/c") == 0);
    CHECK(mkfifo("pipe", 0644) == 0 && chmod("pipe", 02640) == 0);
    bool has_attrs = make_attrs();
    own_str before = place_tell(place->ws, true);
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    carry(place, 0, 5);
    CHECK_INT(place_restore(place, NONE), 0);
    CHECK_INT(place_restore(place, 5), 0);
    own_str after = place_tell(place->ws, true);
    CHECK_TEXT(after, before);
    CHECK(is_one("a", "sub/c"));
    if (has_attrs)
        check_attrs();
}

TEST(curator_carries_links_attributes_and_fifos_of_any_mode)
{
    place_run(carried);
}

/* Many names of one large file: each byte is read once, not once for each name. */
static void many_names(struct place *place)
{
    enum { NAMES = 8000 };
    char name[32];
    own_fd fd = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 16; i++)
        CHECK_INT(write(fd, block, sizeof block), sizeof block);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        CHECK_INT(link("big", name), 0);
    }
    for (uint32_t snapshot = 0; snapshot < 3; snapshot++)
        CHECK_INT(place_snap(place, snapshot, snapshot ? snapshot - 1 : NONE).error, 0);
    CHECK_INT(pwrite(fd, "changed", 7, 0), 7);
    CHECK_INT(place_restore(place, 2), 0);
    CHECK(names_of("big") == NAMES + 1);
    CHECK_INT(pread(fd, block, 7, 0), 7);
    CHECK(memcmp(block, "xxxxxxx", 7) == 0);
}

TEST(curator_reads_a_file_with_many_names_once)
{
    place_run(many_names);
}
