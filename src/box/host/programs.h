/* The two static programs, as bytes inside cupel. */
#ifndef BOX_HOST_PROGRAMS_H
#define BOX_HOST_PROGRAMS_H

extern const char box_builtin_broker[], box_builtin_broker_end[];
extern const char box_builtin_init[], box_builtin_init_end[];

#endif
