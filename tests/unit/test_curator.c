/* Snapshots of a workspace, one case at a time: what is kept, what is shared, what comes
 * back, what a hostile tree can do. */
#include "box/files/curator.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "check.h"
#include "curator_place.h"

#define NONE BOX_STATES

/* Until every ctime so far is old enough to be sure of. */
static void settle(void)
{
    nanosleep(&(struct timespec){ 0, CURATOR_SETTLED_NS + 10000000 }, NULL);
}

static ino_t inode_of(const char *path)
{
    struct stat st;
    CHECK_INT(lstat(path, &st), 0);
    return st.st_ino;
}

static void goes_back(struct place *place)
{
    CHECK_INT(mkdir("sub", 0750), 0);
    place_write("a", "one");
    place_write("sub/b", "two");
    CHECK_INT(symlink("sub/b", "link"), 0);
    CHECK_INT(mkfifo("pipe", 0640), 0);
    own_str before = place_tell(place->ws, true);
    struct box_porter_answer kept = place_snap(place, 0, NONE);
    CHECK_INT(kept.error, 0);
    CHECK_INT(kept.entries, 5);
    CHECK(kept.changed);
    ino_t inode = inode_of("a");
    own_fd held = open("a", O_RDONLY | O_CLOEXEC);
    char bytes[8] = "";
    place_write("a", "something longer");
    CHECK(unlink("sub/b") == 0 && rmdir("sub") == 0 && unlink("link") == 0 && unlink("pipe") == 0);
    place_write("sub", "a file now");
    place_write("new", "new");
    CHECK_INT(place_restore(place, 0), 0);
    own_str after = place_tell(place->ws, true);
    CHECK_TEXT(after, before);
    CHECK_INT(inode_of("a"), inode);
    CHECK_INT(pread(held, bytes, sizeof bytes, 0), 3);
    CHECK_TEXT(bytes, "one");
    CHECK(!place_snap(place, 1, 0).changed);
}

TEST(curator_restores_what_was_there_in_place)
{
    place_run(goes_back);
}

static void shares(struct place *place)
{
    struct stat one, two;
    place_write("same", "same");
    place_write("other", "before");
    settle();
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    struct box_porter_answer again = place_snap(place, 1, 0);
    CHECK(again.error == 0 && !again.changed && again.entries == 2);
    place_write("other", "after!");
    CHECK(place_snap(place, 2, 1).changed);
    CHECK(stat("../store/0/same", &one) == 0 && stat("../store/2/same", &two) == 0);
    CHECK_INT(one.st_ino, two.st_ino);
    CHECK(inode_of("../store/0/other") != inode_of("../store/2/other"));
    CHECK_INT(unlink("other"), 0);
    CHECK(place_snap(place, 3, 2).changed);
    place_forget(place, 0);
    place_forget(place, 3);
    CHECK_INT(place_restore(place, 3), ENOENT);
    CHECK_INT(place_restore(place, 1), 0);
    CHECK(place_holds("other", "before"));
    CHECK_INT(place_restore(place, 0), ENOENT);
    CHECK(place_holds("other", "before"));
}

TEST(curator_shares_what_did_not_change)
{
    place_run(shares);
}

/* A change right after the snapshot, within one tick and of the same size, with the
 * mtime set back: only the bytes tell. */
static void young(struct place *place)
{
    for (int i = 0; i < 20; i++) {
        struct stat st;
        place_write("f", "aaaa");
        CHECK_INT(stat("f", &st), 0);
        CHECK_INT(place_snap(place, 0, NONE).error, 0);
        place_write("f", "bbbb");
        const struct timespec times[2] = { st.st_atim, st.st_mtim };
        CHECK_INT(utimensat(AT_FDCWD, "f", times, 0), 0);
        CHECK(place_snap(place, 1, 0).changed);
        CHECK_INT(place_restore(place, 0), 0);
        CHECK(place_holds("f", "aaaa"));
        CHECK_INT(place_restore(place, 1), 0);
        CHECK(place_holds("f", "bbbb"));
    }
}

TEST(curator_sees_changes_within_one_tick)
{
    place_run(young);
}

/* Two files that were made in one tick and look alike change places with their
 * directories, which touches neither. */
static void swapped(struct place *place)
{
    const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
    CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
    place_write("a/f", "1111");
    place_write("b/f", "2222");
    CHECK(utimensat(AT_FDCWD, "a/f", times, 0) == 0 && utimensat(AT_FDCWD, "b/f", times, 0) == 0);
    settle();
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK(rename("a", "x") == 0 && rename("b", "a") == 0 && rename("x", "b") == 0);
    CHECK(place_snap(place, 1, 0).changed);
    CHECK_INT(place_restore(place, 0), 0);
    CHECK(place_holds("a/f", "1111") && place_holds("b/f", "2222"));
    CHECK_INT(place_restore(place, 1), 0);
    CHECK(place_holds("a/f", "2222") && place_holds("b/f", "1111"));
}

TEST(curator_sees_directories_change_places)
{
    place_run(swapped);
}

static void one_inode(struct place *place)
{
    place_write("a", "content of a");
    place_write("b", "and of b");
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK(unlink("b") == 0 && link("a", "b") == 0);
    CHECK_INT(place_restore(place, 0), 0);
    CHECK(place_holds("a", "content of a") && place_holds("b", "and of b"));
}

TEST(curator_parts_files_that_became_one)
{
    place_run(one_inode);
}

static void sparse(struct place *place)
{
    struct stat kept, back;
    own_fd fd = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_INT(ftruncate(fd, (off_t)1 << 40), 0);
    CHECK_INT(pwrite(fd, "middle", 6, (off_t)1 << 39), 6);
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK(stat("../store/0/big", &kept) == 0 && kept.st_size == (off_t)1 << 40);
    CHECK(kept.st_blocks < 100);
    CHECK_INT(pwrite(fd, "elsewhere", 9, 12345), 9);
    CHECK(place_snap(place, 1, 0).changed);
    CHECK_INT(place_restore(place, 0), 0);
    char bytes[16] = "";
    CHECK_INT(pread(fd, bytes, 6, (off_t)1 << 39), 6);
    CHECK_TEXT(bytes, "middle");
    CHECK(stat("big", &back) == 0 && back.st_blocks < 100 && back.st_size == kept.st_size);
    CHECK_INT(pread(fd, bytes, 1, 12345), 1);
    CHECK_INT(bytes[0], 0);
}

TEST(curator_keeps_holes)
{
    place_run(sparse);
}

static int go_down(int levels, const char *name)
{
    int done = 0;
    while (done < levels && mkdir(name, 0755) == 0 && chdir(name) == 0)
        done++;
    return done;
}

static void hostile(struct place *place)
{
    char name[256];
    memset(name, 0xfe, 255);
    name[255] = 0;
    CHECK_INT(go_down(64, name), 64);
    place_write("deepest", "here");
    CHECK_INT(fchdir(place->ws), 0);
    CHECK(mkdir("closed", 0700) == 0);
    place_write("closed/f", "hidden");
    CHECK(chmod("closed/f", 0) == 0 && chmod("closed", 0) == 0);
    own_str before = place_tell(place->ws, true);
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    CHECK(chmod("closed", 0700) == 0 && chmod("closed/f", 0600) == 0);
    place_write("closed/f", "changed and much longer");
    CHECK(chmod("closed/f", 0) == 0 && chmod("closed", 0) == 0 && chmod(".", 0) == 0);
    CHECK_INT(place_restore(place, 0), 0);
    own_str after = place_tell(place->ws, true);
    CHECK_TEXT(after, before);
    CHECK_INT(chdir(name), 0);
    CHECK_INT(go_down(3000, "d"), 3000);
    place_write("f", "at the bottom");
    CHECK_INT(chmod(".", 0), 0);
    CHECK_INT(fchdir(place->ws), 0);
    CHECK_INT(place_snap(place, 1, 0).error, ENAMETOOLONG);
    CHECK_INT(place_restore(place, 1), ENOENT);
    CHECK_INT(place_restore(place, 0), 0);
    own_str third = place_tell(place->ws, true);
    CHECK_TEXT(third, before);
}

TEST(curator_stands_hostile_trees)
{
    place_run(hostile);
}

static void many(struct place *place)
{
    char name[32];
    place_write("first", "stays");
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    for (int i = 0; i < CURATOR_ENTRIES_MAX; i++) {
        snprintf(name, sizeof name, "f%d", i);
        place_write(name, "");
    }
    int error = ETIMEDOUT; /* CURATOR_SNAP_MS is short for so many on a busy machine */
    for (int i = 0; i < 5 && error == ETIMEDOUT; i++)
        error = place_snap(place, 1, 0).error;
    if (error == ETIMEDOUT) {
        printf("# skipped: this machine is too busy for so many files\n");
        return;
    }
    CHECK_INT(error, E2BIG);
    CHECK_INT(access("../store/1", F_OK), -1);
    CHECK_INT(place_restore(place, 0), 0);
    own_str told = place_tell(place->ws, false);
    CHECK(strncmp(told, "first ", 6) == 0 && strchr(told, '\n') == told + strlen(told) - 1);
}

TEST(curator_refuses_too_many_and_removes_them)
{
    place_run(many);
}

static void sockets(struct place *place)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "sock" };
    own_fd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(sock, (struct sockaddr *)&name, sizeof name), 0);
    CHECK_INT(place_snap(place, 0, NONE).error, 0);
    ino_t inode = inode_of("sock");
    place_write("new", "new");
    CHECK_INT(chmod("sock", 0700), 0);
    CHECK_INT(place_restore(place, 0), 0);
    CHECK(inode_of("sock") == inode && access("new", F_OK) < 0);
    CHECK(unlink("sock") == 0);
    const struct box_porter_call back = { .op = BOX_PORTER_RESTORE, .snapshot = 0 };
    struct box_porter_answer word = place_ask(place, &back, -1);
    CHECK_INT(word.error, 0);
    CHECK_INT(word.lost, BOX_LOST_BIT(SPECIAL));
    CHECK_INT(access("sock", F_OK), -1);
}

TEST(curator_leaves_a_socket_that_is_still_there_and_says_which_is_not)
{
    place_run(sockets);
}

static void empties(struct place *place)
{
    CHECK(mkdir("d", 0) == 0 && chmod(".", 0500) == 0);
    CHECK_INT(place_restore(place, NONE), 0);
    own_str told = place_tell(place->ws, true);
    CHECK_TEXT(told, "");
    place_write("again", "writable");
}

TEST(curator_empties_the_workspace)
{
    place_run(empties);
}

/* --- what the resident porter does beside --- */

static int put(const struct place *place, const char *path, const char *text, bool replace)
{
    struct box_porter_call call = { .op = BOX_PORTER_PUT, .size = strlen(text), .tag = 3,
                                    .replace = replace, .path_len = (uint32_t)strlen(path) };
    own_fd content = io_sealed_memfd("t", text, strlen(text), 0);
    memcpy(call.path, path, strlen(path));
    return place_ask(place, &call, content).error;
}

static void puts_files(struct place *place)
{
    CHECK_INT(put(place, "x/y/z", "one", false), 0);
    CHECK_INT(put(place, "x/y/z", "two", false), EEXIST);
    CHECK(place_holds("x/y/z", "one"));
    CHECK_INT(put(place, "x/y/z", "two", true), 0);
    CHECK(place_holds("x/y/z", "two"));
    CHECK_INT(put(place, "x/y", "dir", true), EISDIR);
    CHECK_INT(symlink("../outside", "out"), 0);
    CHECK(put(place, "out/f", "no", true) != 0);
    CHECK(put(place, "../outside/f", "no", true) != 0);
    CHECK_INT(put(place, "out", "a file", true), 0);
    CHECK(place_holds("out", "a file"));
    own_str outside = place_tell(place->outside, true);
    CHECK_TEXT(outside, "");
    own_str told = place_tell(place->ws, false);
    CHECK(!strstr(told, ".cupel"));
}

TEST(curator_puts_files_beside_user_code)
{
    place_run(puts_files);
}

enum { MIDDLE, FIRST, LAST };

static struct box_porter_answer part(const struct place *place, uint32_t upload, int where,
                                     const char *path, const char *text)
{
    struct box_porter_call call = { .op = BOX_PORTER_PUT, .size = strlen(text), .tag = 3,
                                    .replace = 1, .upload = upload, .first = where == FIRST,
                                    .more = where != LAST, .path_len = (uint32_t)strlen(path) };
    own_fd content = io_sealed_memfd("t", text, strlen(text), 0);
    memcpy(call.path, path, strlen(path));
    return place_ask(place, &call, content);
}

static void puts_parts(struct place *place)
{
    CHECK_INT(put(place, "f", "old", false), 0);
    CHECK_INT(part(place, 1, FIRST, "f", "one,").error, 0);
    CHECK_INT(part(place, 2, FIRST, "d/g", "other,").error, 0);
    CHECK_INT((long)part(place, 1, MIDDLE, "f", "two,").size, 8);
    CHECK(place_holds("f", "old"));
    own_str told = place_tell(place->ws, false);
    CHECK(!strstr(told, ".cupel") && access("d", F_OK) < 0);
    CHECK_INT(part(place, 1, MIDDLE, "d/g", "no").error, ESTALE); /* the path of another */
    CHECK_INT(part(place, 1, LAST, "f", "three").error, 0);
    CHECK(place_holds("f", "one,two,three"));
    CHECK_INT(part(place, 1, LAST, "f", "four").error, ESTALE);
    CHECK_INT(part(place, 2, LAST, "d/g", "end").error, 0);
    CHECK(place_holds("d/g", "other,end"));
    /* What ends an upload: another one to its path, too many, an error, the engine. */
    CHECK_INT(part(place, 3, FIRST, "f", "a").error, 0);
    CHECK_INT(part(place, 4, FIRST, "f", "b").error, 0);
    CHECK_INT(part(place, 3, MIDDLE, "f", "a").error, ESTALE);
    static const char *const paths[] = { "p", "q", "r", "s" };
    for (uint32_t i = 0; i < array_len(paths); i++)
        CHECK_INT(part(place, 5 + i, FIRST, paths[i], "c").error, 0);
    CHECK_INT(part(place, 4, MIDDLE, "f", "b").error, ESTALE);
    CHECK_INT(part(place, 9, FIRST, "d", "a folder").error, 0);
    CHECK_INT(part(place, 9, LAST, "d", "").error, EISDIR);
    CHECK_INT(part(place, 9, LAST, "d", "").error, ESTALE);
    const struct box_porter_call end = { .op = BOX_PORTER_ABANDON };
    CHECK_INT(io_send(place->sock, &end, sizeof end, NULL, 0), 0);
    CHECK_INT(part(place, 8, LAST, "s", "").error, ESTALE);
    own_str after = place_tell(place->ws, false);
    CHECK(place_holds("f", "one,two,three") && !strstr(after, ".cupel"));
}

TEST(curator_puts_a_file_in_parts)
{
    place_run(puts_parts);
}

static int read_error(const struct place *place, const char *path)
{
    struct box_porter_call call = { .op = BOX_PORTER_READ, .size = 1, .tag = 4,
                                    .path_len = (uint32_t)strlen(path) };
    struct {
        struct box_porter_answer head;
        char rest[8];
    } word;
    memcpy(call.path, path, strlen(path));
    CHECK_INT(io_send(place->sock, &call, sizeof call, NULL, 0), 0);
    CHECK(recv(place->sock, &word, sizeof word, 0) >= (ssize_t)sizeof word.head);
    CHECK(word.head.tag == call.tag && word.head.bytes <= 1);
    return word.head.error;
}

/* open(2) of a leased file waits 45 s for its holder, and that of a FIFO for its writer,
 * unless it is told not to. */
static void reads_without_waiting(struct place *place)
{
    place_write("leased", "x");
    CHECK_INT(read_error(place, "leased"), 0);
    own_fd holder = open("leased", O_RDWR | O_CLOEXEC);
    signal(SIGIO, SIG_IGN);
    CHECK_INT(fcntl(holder, F_SETLEASE, F_WRLCK), 0);
    CHECK_INT(read_error(place, "leased"), EAGAIN);
    CHECK_INT(mkfifo("fifo", 0600), 0);
    CHECK_INT(read_error(place, "fifo"), EINVAL);
    CHECK_INT(mkdir("d", 0700), 0);
    CHECK_INT(read_error(place, "d"), EINVAL);
    CHECK_INT(symlink("leased", "link"), 0);
    CHECK_INT(read_error(place, "link"), ELOOP);
    CHECK_INT(read_error(place, "../outside"), EXDEV);
}

TEST(curator_reads_without_waiting)
{
    place_run(reads_without_waiting);
}

static int count_since(const struct place *place, int64_t since_ns, char *last)
{
    struct box_porter_call call = { .op = BOX_PORTER_LIST, .since_ns = since_ns, .tag = 9,
                                    .within_ns = INT64_C(1000000000) };
    struct {
        struct box_porter_answer head;
        char rest[BOX_PORTER_PART];
    } word;
    struct box_porter_entry entry;
    int count = 0;
    CHECK_INT(io_send(place->sock, &call, sizeof call, NULL, 0), 0);
    CHECK(recv(place->sock, &word, sizeof word, 0) >= (ssize_t)sizeof word.head);
    CHECK(word.head.last && word.head.tag == call.tag);
    for (uint32_t at = 0; at < word.head.bytes; count++) {
        memcpy(&entry, word.rest + at, sizeof entry);
        CHECK(entry.ctime_ns >= since_ns);
        snprintf(last, 64, "%.*s %o", (int)entry.path_len, word.rest + at + sizeof entry,
                 entry.mode);
        at += (uint32_t)BOX_PORTER_ENTRY_ROOM(entry.path_len);
    }
    return count;
}

static void lists(struct place *place)
{
    char last[64] = "";
    struct timespec now;
    CHECK_INT(mkdir("d", 0755), 0);
    place_write("d/old", "");
    settle();
    clock_gettime(CLOCK_REALTIME, &now);
    settle();
    CHECK_INT(count_since(place, 0, last), 2);
    int64_t since = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    CHECK_INT(count_since(place, since, last), 0);
    place_write("d/new", "");
    CHECK_INT(chmod("d/new", 0640), 0);
    CHECK_INT(count_since(place, since, last), 1);
    CHECK_TEXT(last, "d/new 640");
}

TEST(curator_lists_what_changed_since)
{
    place_run(lists);
}
