/* The log of the service: one JSON object a line on standard error, or in the journal. A line that
 * cannot be written at once is dropped and counted; nothing here waits. Off until log_open. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <jansson.h>

enum log_level { LOG_LINE_INFO, LOG_LINE_WARN, LOG_LINE_ERROR };

/* Lines go out as {"time","level","event", and the members}; takes the members, which may be
 * NULL. No token's secret, no code and no output may be among them. */
void log_line(enum log_level level, const char *event, json_t *members);
/* From now on lines are written. */
void log_open(int fd);

#endif
