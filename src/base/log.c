/* The service's log. Runs in the serve process, in any of its threads.
 * 1. A line is one write of at most 4,096 bytes, which a pipe takes whole or not at all: a reader
 *    that does not read costs lines, never time.
 * 2. Members are written as JSON, so that no text from outside can begin a line of its own. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"

#define LINE_MAX_BYTES 4096 /* PIPE_BUF */
#define ENTRY_MAX_BYTES 16384
#define NAME_MAX_BYTES 48
#define JOURNAL "/run/systemd/journal/socket"

static const struct {
    const char *name;
    int priority; /* syslog's */
} levels[] = {
    [LOG_LINE_INFO] = { "info", 6 },
    [LOG_LINE_WARN] = { "warn", 4 },
    [LOG_LINE_ERROR] = { "error", 3 },
};

static int line_fd = -1, journal_fd = -1;
static atomic_uint dropped;

void log_open(int fd)
{
    line_fd = fd;
    own_close_fd(&journal_fd);
}

int log_open_journal(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL };
    own_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    log_open(-1);
    journal_fd = take_fd(&fd);
    return 0;
}

bool log_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char here[64];
    if (!stream || fstat(fd, &st) < 0)
        return false;
    snprintf(here, sizeof here, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return strcmp(stream, here) == 0;
}

/* RFC 3339 with milliseconds. */
static void say_time(char *out, size_t room)
{
    struct timespec now;
    struct tm parts;
    char seconds[24];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out, room, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

static json_t *head_of(enum log_level level, const char *event, unsigned lost)
{
    char time[40];
    say_time(time, sizeof time);
    json_t *line = json_pack("{s:s, s:s, s:s}", "time", time, "level", levels[level].name, "event",
                             event);
    if (lost > 0)
        json_object_set_new(line, "dropped", json_integer(lost));
    return line;
}

/* One field of the journal's protocol: values may hold newlines, so each has its length. */
static void add_field(struct buf *entry, const char *prefix, const char *name, struct str value)
{
    char whole[NAME_MAX_BYTES + 8];
    size_t at = (size_t)snprintf(whole, sizeof whole, "%s", prefix);
    for (; *name && at < sizeof whole - 1; name++)
        whole[at++] = (char)(*name >= 'a' && *name <= 'z'   ? *name - 32
                             : *name >= '0' && *name <= '9' ? *name
                                                            : '_');
    whole[at] = 0;
    char len[8];
    for (size_t i = 0; i < sizeof len; i++)
        len[i] = (char)((uint64_t)value.len >> 8 * i & 0xff);
    if (buf_room(entry, at + value.len + sizeof len + 2) == NULL)
        return; /* this field is too large */
    buf_add_text(entry, whole);
    buf_add(entry, "\n", 1);
    buf_add(entry, len, sizeof len);
    buf_add_str(entry, value);
    buf_add(entry, "\n", 1);
}

static bool send_entry(enum log_level level, const char *event, const json_t *members,
                       struct str line)
{
    own_buf entry = BUF_INIT(ENTRY_MAX_BYTES);
    const char *name;
    json_t *value;
    buf_printf(&entry, "PRIORITY=%d\nSYSLOG_IDENTIFIER=cupel\n", levels[level].priority);
    add_field(&entry, "", "message", line);
    add_field(&entry, "CUPEL_", "event", str_of(event));
    json_object_foreach ((json_t *)(uintptr_t)members, name, value) {
        own_str text = json_is_string(value) ? buf_strdup(json_str(value))
                                             : json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (text && strlen(name) <= NAME_MAX_BYTES)
            add_field(&entry, "CUPEL_", name, str_of(text));
    }
    return send(journal_fd, entry.at, entry.len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static bool write_line(struct buf *line)
{
    struct pollfd room = { .fd = line_fd, .events = POLLOUT };
    return buf_add(line, "\n", 1) == 0 && poll(&room, 1, 0) > 0 && (room.revents & POLLOUT) &&
           write(line_fd, line->at, line->len) == (ssize_t)line->len;
}

void log_line(enum log_level level, const char *event, json_t *members)
{
    own_json owned = members;
    if (line_fd < 0 && journal_fd < 0)
        return;
    unsigned lost = atomic_exchange(&dropped, 0);
    own_json whole = head_of(level, event, lost);
    own_buf line = BUF_INIT(LINE_MAX_BYTES);
    /* A time or level of the caller's would hide ours. */
    if (owned && (json_object_update_missing(whole, owned) < 0 || json_add(&line, whole) < 0 ||
                  line.len >= LINE_MAX_BYTES)) {
        own_json brief = head_of(level, event, lost);
        json_object_set_new(brief, "cut", json_true());
        line.len = 0;
        if (json_add(&line, brief) < 0)
            return;
    } else if (!owned && json_add(&line, whole) < 0) {
        return;
    }
    if (!(journal_fd >= 0 ? send_entry(level, event, owned, buf_str(&line)) : write_line(&line)))
        atomic_fetch_add(&dropped, lost + 1);
}
