/* The processor's instruction sets, by the names of /proc/cpuinfo. */
#ifndef BOX_INSIDE_SYSTEM_FLAGS_H
#define BOX_INSIDE_SYSTEM_FLAGS_H

#include <stddef.h>

#if defined(__aarch64__)
#define SYSTEM_FLAGS_NAME "Features"
#else
#define SYSTEM_FLAGS_NAME "flags"
#endif

/* Write the names, with a space between two. Names beyond `room` are left out. */
void system_flags(char *out, size_t room);

#endif
