/* Tool files with "openapi": a whole API. */
#ifndef TOOL_HOST_OPENAPI_SOURCE_H
#define TOOL_HOST_OPENAPI_SOURCE_H

#include "tool/host/source.h"

int openapi_source_open(const json_t *file, const struct source_from *from, struct source *out,
                        struct err *err);

#endif
