/* Tool files with "command": a program for each call. Runs in the tool host's process. */
#ifndef TOOL_HOST_COMMAND_H
#define TOOL_HOST_COMMAND_H

#include "tool/host/source.h"

int command_open(const json_t *file, const struct source_from *from, struct source *out,
                 struct err *err);

#endif
