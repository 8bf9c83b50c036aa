/* Private to the result's files. */
#ifndef CONTRACT_RESULT_INT_H
#define CONTRACT_RESULT_INT_H

#include "contract/result.h"

#define RESULT_STATUS_COUNT (RESULT_INTERNAL + 1)
#define RESULT_ERROR_COUNT (RESULT_E_INTERNAL + 1)

struct result_status_row {
    const char *name;
    int exit_code; /* -1: the code's own; -2: 128 + signal */
};
extern const struct result_status_row result_statuses[RESULT_STATUS_COUNT];
extern const char *const result_errors[RESULT_ERROR_COUNT]; /* [RESULT_E_NONE] is NULL */

json_t *result_outputs_json(const struct result *result);
void result_error_clear(struct result_error *error);

#endif
