/* A driver's claims about code that will fail or has failed, checked and copied. Pure. */
#ifndef ENGINE_TALK_DRIVER_ADVICE_H
#define ENGINE_TALK_DRIVER_ADVICE_H

#include <jansson.h>

/* Of an `error` line: [{"function","line","text"}] and [{"name","text","type"}], without invalid
 * entries; NULL if there is no list. */
json_t *driver_advice_frames(const json_t *line);
json_t *driver_advice_values(const json_t *line);
/* Of a `check` line: [{"kind","line","column","name","message","hint"}], or NULL. */
json_t *driver_advice_problems(const json_t *line);

#endif
