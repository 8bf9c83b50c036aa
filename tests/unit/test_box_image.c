/* Boxes whose root is a tree of the store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "box_hall.h"
#include "check.h"

/* The init of a sanitized build is no static program: an image would need its libraries. */
#ifndef __SANITIZE_ADDRESS__

static struct hall hall;

static bool begin(bool ordinary)
{
    hall_begin(&hall, ordinary);
    if (hall_busybox(&hall))
        return true;
    hall_end(&hall);
    return false;
}

static const char *said(const char *command)
{
    return hall_say(&hall, hall_image(HALL_HEX, false), command);
}

static struct box_news tried(struct box_image image)
{
    char out[64];
    struct box_call create = hall_create(image);
    return hall_run(&hall, &create, -1, "true", out, sizeof out);
}

TEST_BOTH(a_box_has_the_files_of_its_image_and_cupels_own)
{
    (void)ordinary;
    hall_file(&hall, "T/opt/app/hello", "of the image\n", 0444);
    hall_file(&hall, "T/etc/mine", "its etc\n", 0444);
    hall_file(&hall, "T/etc/passwd", "root::0:0::/:/bin/sh\n", 0444);
    hall_file(&hall, "T/etc/resolv.conf", "nameserver 10.0.0.1\n", 0444);
    hall_file(&hall, "T/entry.sh", "echo entry\n", 0444);
    hall_file(&hall, "T/home/user/secret", "covered\n", 0444);
    if (!hall_open(&hall))
        return;
    CHECK_TEXT(said("cat /opt/app/hello /etc/mine /etc/resolv.conf; sh /entry.sh; pwd; id -un\n"
                    "cd; pwd; ls /home/user /usr; test -e /usr/lib/cupel && echo cupel\n"
                    "echo x > /workspace/a && echo x > /tmp/b && cat /workspace/a /tmp/b"),
               "of the image\nits etc\nentry\n/workspace\nuser\n/workspace\n"
               "/home/user:\n\n/usr:\nlib\ncupel\nx\nx\n");
    hall_end(&hall);
}

TEST_BOTH(a_box_of_an_image_shows_nothing_of_the_host)
{
    char other[256];
    (void)ordinary;
    snprintf(other, sizeof other, "trees/%s/marker", HALL_OTHER);
    hall_file(&hall, other, "other image\n", 0444);
    if (!hall_open(&hall))
        return;
    const char *mounts = said("cat /proc/self/mountinfo; ls /mnt /media /srv");
    CHECK(strstr(mounts, hall.root) == NULL && strstr(mounts, "trees") == NULL);
    CHECK(strstr(mounts, HALL_HEX) == NULL && strstr(mounts, "images") == NULL);
    CHECK_TEXT(said("busybox find / -name marker -o -name 'trees' -o -name '" HALL_OTHER "'"), "");
    CHECK_TEXT(said("test -e /usr/bin/python3 || test -e /usr/share && echo host"), "");
    CHECK_TEXT(said("ls -d /proc/[0-9]* | wc -l"), "3\n");
    hall_end(&hall);
}

TEST_BOTH(nobody_in_the_box_can_write_to_an_image)
{
    (void)ordinary;
    hall_file(&hall, "T/opt/data", "whole\n", 0666);
    if (!hall_open(&hall))
        return;
    CHECK(strstr(said("echo x > /opt/data; echo x > /opt/new; busybox rm -rf /opt"),
                 "Read-only file system") != NULL);
    CHECK_TEXT(said("cat /opt/data; touch /usr/lib/x /etc/x /dev/x /sys/x 2>&1 | grep -c -e only "
                    "-e denied"),
               "whole\n4\n");
    hall_end(&hall);
}

TEST_BOTH(the_box_of_an_image_says_that_no_file_is_of_the_host)
{
    (void)ordinary;
    if (!hall_open(&hall))
        return;
    struct box_news alone = tried(hall_image(HALL_HEX, false));
    struct box_news on_host = tried(hall_image(HALL_HEX, true));
    struct box_news host = tried((struct box_image){ 0 });
    CHECK(alone.kind == BOX_NEWS_STARTED && alone.walls & BOX_WALL_BIT(OWN_IMAGE));
    CHECK(alone.walls & BOX_WALL_BIT(OWN_FILES) && alone.walls & BOX_WALL_BIT(READ_ONLY_ROOT));
    CHECK(host.kind == BOX_NEWS_STARTED && !(host.walls & BOX_WALL_BIT(OWN_IMAGE)));
    CHECK(on_host.kind == BOX_NEWS_STARTED && !(on_host.walls & BOX_WALL_BIT(OWN_IMAGE)));
    CHECK_INT(alone.walls & ~BOX_WALL_BIT(OWN_IMAGE), host.walls);
    hall_end(&hall);
}

TEST_BOTH(an_image_on_the_host_adds_to_usr_and_hides_the_local_files_of_the_host)
{
    (void)ordinary;
    hall_file(&hall, "T/usr/local/lib/added.py", "added\n", 0444);
    hall_file(&hall, "T/usr/share/added-by-image", "share\n", 0444);
    hall_file(&hall, "T/opt/tool", "opt\n", 0444);
    hall_file(&hall, "T/etc/added", "etc\n", 0444);
    if (!hall_open(&hall))
        return;
    CHECK_TEXT(
        hall_say(&hall, hall_image(HALL_HEX, true),
                 "cat /usr/local/lib/added.py /usr/share/added-by-image /opt/tool /etc/added;"
                 "ls /usr/local /usr/local/lib; test -e /usr/bin/env && echo host;"
                 "test -e /usr/lib/cupel && echo cupel"),
        "added\nshare\nopt\netc\n/usr/local:\nlib\n\n/usr/local/lib:\nadded.py\nhost\n"
        "cupel\n");
    hall_end(&hall);
}

TEST_BOTH(an_image_on_the_host_without_local_files_shows_none)
{
    (void)ordinary;
    hall_file(&hall, "T/usr/share/added-by-image", "share\n", 0444);
    if (!hall_open(&hall))
        return;
    CHECK_TEXT(hall_say(&hall, hall_image(HALL_HEX, true), "ls -A /usr/local"), "");
    hall_end(&hall);
}

static void make_hostile(bool on_host)
{
    hall_link(&hall, "/etc", on_host ? "T/opt" : "T/usr");
    hall_link(&hall, "/proc/self/root", "T/etc");
    hall_link(&hall, "/", "T/proc");
    hall_link(&hall, "/workspace", "T/tmp");
    hall_link(&hall, "../../..", "T/workspace");
    hall_file(&hall, "T/dev", "a file\n", 0444);
    hall_file(&hall, "T/.landlock", "open\n", 0444);
    hall_file(&hall, "T/.proc/meminfo", "lie\n", 0444);
    hall_file(&hall, "T/sys/kernel/lie", "lie\n", 0444);
    hall_file(&hall, "T/var/run/lie", "lie\n", 0444);
    hall_link(&hall, "/etc/shadow", "T/home");
    hall_link(&hall, "/usr", "T/mnt");
    hall_link(&hall, "/usr", "T/srv");
}

TEST_BOTH(an_image_of_links_and_files_where_folders_belong_does_no_harm)
{
    (void)ordinary;
    make_hostile(/* on_host= */ false);
    if (!hall_open(&hall))
        return;
    CHECK_TEXT(said("ls /usr; ls -d /sys/kernel /usr/lib/cupel; head -c 8 /proc/meminfo; echo;"
                    "cat /etc/hostname; ls /dev/null; ls -d /workspace /tmp; cat /.landlock"),
               "lib\n/usr/lib/cupel\nMemTotal\nbox\n/dev/null\n/tmp\n/workspace\n"
               "ls: /sys/kernel: No such file or directory\n"
               "cat: can't open '/.landlock': Permission denied\n");
    struct box_news news = tried(hall_image(HALL_HEX, false));
    CHECK(news.kind == BOX_NEWS_STARTED && news.walls & BOX_WALL_BIT(OWN_IMAGE));
    hall_end(&hall);
}

TEST_BOTH(an_image_on_the_host_that_is_hostile_is_refused_or_harmless)
{
    (void)ordinary;
    make_hostile(/* on_host= */ true);
    if (!hall_open(&hall))
        return;
    struct box_image image = hall_image(HALL_HEX, true);
    CHECK_TEXT(hall_say(&hall, image, "cat /etc/hostname; cat /opt/hostname; ls -A /usr/local"),
               "box\nbox\n");
    hall_link(&hall, "/etc", "T/usr");
    CHECK_INT(tried(image).step, BOX_STEP_TREE_OF_IMAGE);
    CHECK_INT(unlink(hall_path(&hall, "T/usr")), 0);
    hall_link(&hall, "/etc", "T/usr/local");
    CHECK_INT(tried(image).step, BOX_STEP_TREE_OF_IMAGE);
    hall_end(&hall);
}

TEST_BOTH(an_unknown_image_or_a_link_is_refused_and_the_next_box_is_built)
{
    char other[128];
    (void)ordinary;
    snprintf(other, sizeof other, "trees/%s", HALL_OTHER);
    hall_link(&hall, "/", other);
    if (!hall_open(&hall))
        return;
    struct box_image unknown = hall_image(HALL_HEX, false);
    unknown.hex[0] = 'a';
    struct box_news news = tried(unknown);
    CHECK_INT(news.kind, BOX_NEWS_FAILED);
    CHECK_INT(news.step, BOX_STEP_TREE_OF_IMAGE);
    CHECK_INT(news.error, ENOENT);
    CHECK_INT(tried(hall_image(HALL_OTHER, false)).step, BOX_STEP_TREE_OF_IMAGE);
    CHECK_TEXT(said("echo fine"), "fine\n");
    hall_end(&hall);
}

TEST(an_image_without_attached_trees_is_refused)
{
    if (!begin(/* ordinary= */ false))
        return;
    close(hall.attach[0].fd);
    hall.attach_count = 0;
    if (!hall_open(&hall))
        return;
    CHECK_INT(tried(hall_image(HALL_HEX, false)).step, BOX_STEP_TREE_OF_IMAGE);
    CHECK_INT(tried((struct box_image){ 0 }).kind, BOX_NEWS_STARTED);
    hall_end(&hall);
}

TEST_BOTH(programs_of_an_image_gain_no_rights_by_setuid_bits)
{
    (void)ordinary;
    hall_file(&hall, "T/bin/who", "#!/bin/sh\nid -u\n", 04755);
    CHECK_INT(chmod(hall_path(&hall, "T/bin/busybox"), 04755), 0);
    if (!hall_open(&hall))
        return;
    CHECK_TEXT(said("/bin/who; busybox id -u; grep -c 'Uid:.1000.1000.1000' /proc/self/status"),
               "1000\n1000\n1\n");
    hall_end(&hall);
}

TEST_BOTH(an_image_with_20000_entries_at_its_root_starts)
{
    char path[64];
    (void)ordinary;
    for (int i = 0; i < 20000; i++) {
        snprintf(path, sizeof path, "T/x%d", i);
        if (i % 2)
            hall_dir(&hall, path);
        else
            hall_link(&hall, "bin/sh", path);
    }
    if (!hall_open(&hall))
        return;
    struct box_news news = tried(hall_image(HALL_HEX, false));
    CHECK(news.kind == BOX_NEWS_STARTED && news.walls & BOX_WALL_BIT(OWN_IMAGE));
    hall_end(&hall);
}
#endif
