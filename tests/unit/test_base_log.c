/* The service's log: whole lines of JSON, and none that would wait. */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/own.h"

static size_t read_all(int fd, char *out, size_t room)
{
    ssize_t n = read(fd, out, room - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

TEST(log_writes_one_object_a_line)
{
    int ends[2];
    char text[8192];
    struct err err = ERR_INIT;
    CHECK_INT(pipe2(ends, O_NONBLOCK), 0);
    log_line(LOG_LINE_INFO, "before", NULL); /* off */
    log_open(ends[1]);
    log_line(LOG_LINE_WARN, "run",
             json_pack("{s:s, s:s, s:i}", "token", "al\nice", "run", "r_1", "status", 200));
    log_line(LOG_LINE_ERROR, "plain", NULL);
    read_all(ends[0], text, sizeof text);
    char *second = strchr(text, '\n');
    CHECK(second && strchr(second + 1, '\n') == text + strlen(text) - 1);
    *second++ = 0;
    own_json line = json_read(str_of(text), sizeof text, &err);
    CHECK_TEXT(json_string_value(json_object_get(line, "level")), "warn");
    CHECK_TEXT(json_string_value(json_object_get(line, "event")), "run");
    CHECK_TEXT(json_string_value(json_object_get(line, "token")), "al\nice");
    CHECK_INT(json_integer_value(json_object_get(line, "status")), 200);
    const char *time = json_string_value(json_object_get(line, "time"));
    CHECK_INT(strlen(time), strlen("2026-11-16T12:00:00.000Z"));
    CHECK(time[10] == 'T' && time[19] == '.' && time[23] == 'Z');
    CHECK(strstr(second, "\"level\":\"error\""));
}

TEST(log_keeps_its_own_fields)
{
    int ends[2];
    char text[8192];
    CHECK_INT(pipe2(ends, O_NONBLOCK), 0);
    log_open(ends[1]);
    log_line(LOG_LINE_INFO, "own", json_pack("{s:s, s:s}", "event", "forged", "level", "forged"));
    read_all(ends[0], text, sizeof text);
    CHECK(strstr(text, "\"event\":\"own\"") && !strstr(text, "forged"));
}

TEST(log_cuts_a_line_that_is_too_long)
{
    int ends[2];
    char text[8192];
    own_str large = buf_alloc_zero(1, 10000);
    memset(large, 'x', 9999);
    CHECK_INT(pipe2(ends, O_NONBLOCK), 0);
    log_open(ends[1]);
    log_line(LOG_LINE_INFO, "large", json_pack("{s:s}", "path", large));
    CHECK(read_all(ends[0], text, sizeof text) < 4096);
    CHECK(strstr(text, "\"event\":\"large\"") && strstr(text, "\"cut\":true"));
}

TEST(log_drops_and_counts_what_nobody_reads)
{
    int ends[2];
    static char text[1 << 20];
    CHECK_INT(pipe2(ends, 0), 0); /* blocking: a write that waits would hang this test */
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    log_open(ends[1]);
    for (int i = 0; i < 1000; i++)
        log_line(LOG_LINE_INFO, "many", json_pack("{s:i}", "i", i));
    size_t n = read_all(ends[0], text, sizeof text);
    CHECK(n > 0 && text[n - 1] == '\n');
    long lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    log_line(LOG_LINE_INFO, "after", NULL);
    read_all(ends[0], text, sizeof text);
    char *count = strstr(text, "\"dropped\":");
    CHECK(count != NULL);
    CHECK_INT(strtol(count + strlen("\"dropped\":"), NULL, 10), 1000 - lines);
}

TEST(log_knows_the_journals_stream)
{
    struct stat st;
    char stream[64];
    unsetenv("JOURNAL_STREAM");
    CHECK(!log_is_journal(0));
    own_fd fd = open("/dev/null", O_RDONLY);
    CHECK_INT(fstat(fd, &st), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    CHECK(log_is_journal(fd));
    setenv("JOURNAL_STREAM", "1:1", 1);
    CHECK(!log_is_journal(fd));
}
