/* The helper that writes into the -o folder: inside it, and nowhere else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/link/steward.h"
#include "check.h"

static char base[64];

static void make_base(void)
{
    snprintf(base, sizeof base, "/tmp/cupel-steward-XXXXXX");
    CHECK(mkdtemp(base) != NULL);
}

static void remove_base(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", base, (char *)NULL);
        _exit(1);
    }
    waitpid(pid, NULL, 0);
}

static const char *read_back(const char *path)
{
    static char text[256];
    char whole[300];
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    own_fd fd = open(whole, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0;
    return n < 0 ? NULL : text;
}

TEST(cli_steward_writes_beneath_the_folder_that_it_makes)
{
    make_base();
    char folder[128];
    snprintf(folder, sizeof folder, "%s/new/out", base);
    struct cli_steward steward = CLI_STEWARD_INIT;
    struct err err = ERR_INIT;
    CHECK_INT(cli_steward_open(folder, &steward, &err), 0);
    CHECK_INT(cli_steward_write(&steward, STR("a.txt"), STR("one"), &err), 0);
    CHECK_INT(cli_steward_write(&steward, STR("a.txt"), STR("two"), &err), 0);
    CHECK_INT(cli_steward_write(&steward, STR("deep/er/b.txt"), STR("b"), &err), 0);
    CHECK_INT(cli_steward_write(&steward, STR("empty"), STR(""), &err), 0);
    CHECK_INT(cli_steward_write(&steward, STR(".cupel/stdout"), STR("s"), &err), 0);
    CHECK_TEXT(read_back("new/out/a.txt"), "two");
    CHECK_TEXT(read_back("new/out/deep/er/b.txt"), "b");
    CHECK_TEXT(read_back("new/out/empty"), "");
    char whole[200];
    struct stat st;
    snprintf(whole, sizeof whole, "%s/a.txt", folder);
    CHECK(stat(whole, &st) == 0 && (st.st_mode & 07777) == 0644);
    cli_steward_close(&steward);
    CHECK_INT(steward.sock, -1);
    remove_base();
}

TEST(cli_steward_never_leaves_the_folder)
{
    make_base();
    char folder[128], link[160], target[160];
    snprintf(folder, sizeof folder, "%s/out", base);
    CHECK_INT(mkdir(folder, 0755), 0);
    snprintf(link, sizeof link, "%s/way", folder);
    CHECK_INT(symlink("..", link), 0);
    snprintf(target, sizeof target, "%s/secret", base);
    snprintf(link, sizeof link, "%s/file", folder);
    CHECK_INT(symlink(target, link), 0);
    struct cli_steward steward = CLI_STEWARD_INIT;
    struct err err = ERR_INIT;
    CHECK_INT(cli_steward_open(folder, &steward, &err), 0);
    static const char *const refused[] = { "../x",  "/tmp/x", "a/../../x", "way/x",
                                           "",      ".",      "a//b",      "way/new/x" };
    for (size_t i = 0; i < array_len(refused); i++)
        CHECK_INT(cli_steward_write(&steward, str_of(refused[i]), STR("x"), &err), -1);
    CHECK(!read_back("x"));
    CHECK(!read_back("new/x"));
    /* A link under the file's own name is replaced, not followed. */
    CHECK_INT(cli_steward_write(&steward, STR("file"), STR("mine"), &err), 0);
    CHECK(!read_back("secret"));
    CHECK_TEXT(read_back("out/file"), "mine");
    cli_steward_close(&steward);
    remove_base();
}

TEST(cli_steward_says_what_cannot_be_a_folder)
{
    struct cli_steward steward = CLI_STEWARD_INIT;
    struct err err = ERR_INIT;
    CHECK_INT(cli_steward_open("/dev/null/x", &steward, &err), -1);
    CHECK(err.text[0]);
    CHECK_INT(cli_steward_open("", &steward, &err), -1);
    cli_steward_close(&steward);
}

static bool can_read(struct cli_steward *steward, const char *path, const char *content)
{
    struct err err = ERR_INIT;
    own_fd fd = -1;
    char text[16] = "";
    return cli_steward_read(steward, str_of(path), &fd, &err) == 0 && read(fd, text, 15) >= 0 &&
           write(fd, "x", 1) < 0 && strcmp(text, content) == 0;
}

TEST(cli_steward_opens_files_of_its_folder_if_it_was_started_to)
{
    make_base();
    char folder[128], link[160];
    snprintf(folder, sizeof folder, "%s/here", base);
    struct cli_steward plain = CLI_STEWARD_INIT, reading = CLI_STEWARD_INIT;
    struct err err = ERR_INIT;
    CHECK_INT(cli_steward_open(base, &plain, &err), 0);
    CHECK_INT(cli_steward_write(&plain, STR("secret"), STR("no"), &err), 0);
    CHECK_INT(cli_steward_open_reading(folder, &reading, &err), 0);
    CHECK_INT(cli_steward_write(&reading, STR("deep/a"), STR("one"), &err), 0);
    snprintf(link, sizeof link, "%s/way", folder);
    CHECK_INT(symlink("../secret", link), 0);
    snprintf(link, sizeof link, "%s/pipe", folder);
    CHECK_INT(mkfifo(link, 0600), 0);
    CHECK(can_read(&reading, "deep/a", "one"));
    static const char *const refused[] = { "../secret", "way", "deep/../../secret", "/etc/passwd",
                                           "none",      "deep", "pipe",             "" };
    for (size_t i = 0; i < array_len(refused); i++)
        CHECK(!can_read(&reading, refused[i], ""));
    CHECK(can_read(&reading, "deep/a", "one"));
    CHECK(!can_read(&plain, "secret", "no"));
    cli_steward_close(&reading);
    cli_steward_close(&plain);
    remove_base();
}
