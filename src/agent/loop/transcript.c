/* Writes each event as one line at once, so that it is on disk whatever happens to this process.
 * Runs in the task's process. */
#include "agent/loop/transcript.h"

#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"

#define LINE_MAX (256u << 20)

int agent_transcript_add(int fd, const char *kind, const json_t *data)
{
    struct timespec now;
    struct tm utc;
    char at[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(at + len, sizeof at - len, ".%03ldZ", now.tv_nsec / 1000000);
    own_json event = json_pack("{s:s, s:s, s:O}", "at", at, "kind", kind, "data", data);
    own_buf line = BUF_INIT(LINE_MAX);
    if (!event || json_add(&line, event) < 0 || buf_add_text(&line, "\n") < 0)
        return -1;
    return io_write_all(fd, line.at, line.len);
}
