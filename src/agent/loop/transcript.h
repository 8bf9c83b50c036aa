/* A task's transcript: JSON lines, one for each event. */
#ifndef AGENT_LOOP_TRANSCRIPT_H
#define AGENT_LOOP_TRANSCRIPT_H

#include <jansson.h>

/* Appends {"at","kind","data"}. -1 on failure: the task continues without. */
int agent_transcript_add(int fd, const char *kind, const json_t *data);

#endif
