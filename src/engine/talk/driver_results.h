/* The values that a driver shows: results, their updates, and their removal. Box claims: checked,
 * capped. Pure. */
#ifndef ENGINE_TALK_DRIVER_RESULTS_H
#define ENGINE_TALK_DRIVER_RESULTS_H

#include "engine/talk/driver.h"

void driver_results_done(struct driver *driver);
/* Would the current line exceed the maximum for all results? */
bool driver_results_are_full(const struct driver *driver);
/* The lines `result` and `clear`. False: the line breaks the protocol, or a maximum. */
bool driver_results_take(struct driver *driver, json_t *line);
bool driver_results_clear(struct driver *driver, json_t *line);
/* Calls driver->heard (driver.c). */
void driver_tell(struct driver *driver, enum driver_word word, size_t index);

#endif
