/* The log of the service: one JSON object a line on standard error, or an entry in the journal. A
 * line that cannot be written at once is dropped and counted; nothing here waits. Off until it is
 * opened. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <jansson.h>
#include <stdbool.h>

enum log_level { LOG_LINE_INFO, LOG_LINE_WARN, LOG_LINE_ERROR };

/* Lines go out as {"time","level","event", and the members}; takes the members, which may be
 * NULL. No token's secret, no code and no output may be among them. */
void log_line(enum log_level level, const char *event, json_t *members);
/* From now on lines are written to this descriptor, which stays the caller's; -1: nowhere. */
void log_open(int fd);
/* From now on lines go to the journal, by its own protocol: members become fields CUPEL_NAME. To be
 * called before the process loses sight of the journal's socket. -1 with errno: there is none, and
 * the log is as before. */
int log_open_journal(void);
/* Is this descriptor the journal's stream, as the service manager says in JOURNAL_STREAM? */
bool log_is_journal(int fd);

#endif
