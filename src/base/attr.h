/* Compiler attributes under short names, so that headers read as plain C. */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#define attr_printf(fmt, first) __attribute__((format(printf, fmt, first)))
#define attr_cleanup(fn) __attribute__((cleanup(fn)))
#define attr_must_use __attribute__((warn_unused_result))
#define attr_noreturn __attribute__((noreturn))
#define attr_unused __attribute__((unused))

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

#endif
