/* What a driver says of code that will fail or has failed: a claim, checked and copied. Pure. */
#ifndef ENGINE_TALK_DRIVER_ADVICE_H
#define ENGINE_TALK_DRIVER_ADVICE_H

#include <jansson.h>

/* Of an `error` line: [{"function","line","text"}] and [{"name","text","type"}]; what is not as
 * the protocol says is left out, NULL where there is no list. */
json_t *driver_advice_frames(const json_t *line);
json_t *driver_advice_values(const json_t *line);
/* Of a `check` line: [{"kind","line","column","name","message","hint"}], or NULL. */
json_t *driver_advice_problems(const json_t *line);

#endif
