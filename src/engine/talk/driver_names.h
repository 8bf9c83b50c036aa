/* A driver's claims about its session's names, checked and copied. Pure. */
#ifndef ENGINE_TALK_DRIVER_NAMES_H
#define ENGINE_TALK_DRIVER_NAMES_H

#include <jansson.h>

/* {"added","changed","removed","more"}, each absent if empty; NULL: invalid. */
json_t *driver_names_changes(const json_t *names);
/* Of a `names` line {"names","names_more"}, of a `complete` line {"matches","start"}; NULL. */
json_t *driver_names_answer(const json_t *line);

#endif
