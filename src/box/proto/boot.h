/* Constants that the bootstrap and the broker share, beside the messages. */
#ifndef BOX_PROTO_BOOT_H
#define BOX_PROTO_BOOT_H

#include "box/proto/proto.h"

#define BOOT_FD_ENGINE 3 /* the broker's end of the socket, at its exec */
#define BOOT_FD_ATTACHED 6 /* and the first of its detached mounts; as many as SETUP tells */
#define BOOT_ATTACHED (2 + BOX_ATTACH_FILES + BOX_ATTACH_TREES) /* at most */

/* Uids in W: box n has BOOT_FIRST_ID + 2n for init and the next for its occupant. */
#define BOOT_FIRST_ID 1024
#define BOOT_ID_INIT(box) (BOOT_FIRST_ID + 2 * (unsigned)(box))
#define BOOT_ID_OCCUPANT(box) (BOOT_ID_INIT(box) + 1)

/* As root each instance owns a range of 65,536 uids that no system assigns (0x70000000 is above
 * systemd's container range). Doors drop to the first uid above all ranges. */
#define BOOT_SLOTS 4095
#define BOOT_UID_BASE 0x70000000u
#define BOOT_UID_RANGE 65536u
#define BOOT_DOOR_UID (BOOT_UID_BASE + BOOT_SLOTS * BOOT_UID_RANGE)

#endif
