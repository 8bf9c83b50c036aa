/* Starting porters, and the store of the resident one. */
#ifndef BOX_BROKER_BROKER_STORE_H
#define BOX_BROKER_BROKER_STORE_H

#include "box/broker/broker.h"

/* Start a porter as the call (BOX_OP_PORTER) says. A resident porter stays for the box's life:
 * while it lives, another is refused with EBUSY. */
enum box_step broker_store_porter(struct broker *broker, const struct box_call *call,
                                  int *out_sock);

#endif
