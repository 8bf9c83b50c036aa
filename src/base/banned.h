/* Forced into every file by the build: functions that lose a bound, a locale or
 * a shell are compile errors. Nothing includes this by hand. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With clang, fortified libc headers make these macros. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll system popen tmpnam mktemp
#pragma GCC poison localtime gmtime ctime asctime

#endif
