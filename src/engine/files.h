/* Files into a box before it starts, and out of it after its end, by the porter. */
#ifndef ENGINE_FILES_H
#define ENGINE_FILES_H

#include "base/err.h"
#include "contract/request.h"
#include "contract/result.h"

/* Give every input file of the request to the porter behind `sock`. A file that
 * does not fit on the box's disk is the request's fault: ERR_INPUT. */
int files_put(int sock, const struct request *request, struct err *err);

struct files_caps {
    bool bytes_hit, count_hit;
};
/* List what is in the dead box, fetch new and changed files within the caps into
 * the result, and say of the rest why it was left. */
int files_collect(int sock, const struct request *request, struct result *result,
                  struct files_caps *out_caps, struct err *err);

#endif
