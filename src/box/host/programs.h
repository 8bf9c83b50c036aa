/* The two static programs, as bytes inside cupel. */
#ifndef BOX_HOST_PROGRAMS_H
#define BOX_HOST_PROGRAMS_H

extern const unsigned char box_embed_broker[], box_embed_broker_end[];
extern const unsigned char box_embed_init[], box_embed_init_end[];

#endif
