/* The kernel memory of the sockets of a network namespace, by sock_diag(7). Runs in a short-lived
 * child of the broker that has joined the network namespace of a box. The kernel charges data on a
 * unix socket to its sender, and a closed sender is in no list: then the receiver's unread data
 * gives an estimate. */
#include "box/broker/sockets.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/attr.h"
#include "base/own.h"

#define SOCKET_BYTES 2048 /* of the socket, its inode and its file, without data */
#define ONE_BYTE 768      /* kernel memory of a message of one byte */
#define DATAGRAMS 11      /* maximum queued at one socket */

struct listed {
    int64_t bytes, sockets;
    int64_t most;   /* maximum that one unix socket can have sent */
    int64_t unread; /* upper bound of bytes from closed senders */
};

int64_t sockets_used(pid_t pid)
{
    static const char key[] = "sockets: used ";
    char path[48], text[512];
    snprintf(path, sizeof path, "/proc/%d/net/sockstat", (int)pid);
    io_read_text(AT_FDCWD, path, text, sizeof text);
    return strncmp(text, key, sizeof key - 1) == 0 ? strtoll(text + sizeof key - 1, NULL, 10) : -1;
}

/* struct sk_meminfo: signed, because the kernel counts reserves in advance. */
static int64_t of_meminfo(const int32_t *info, size_t count)
{
    static const int parts[] = { SK_MEMINFO_RMEM_ALLOC, SK_MEMINFO_WMEM_ALLOC,
                                 SK_MEMINFO_FWD_ALLOC,  SK_MEMINFO_WMEM_QUEUED,
                                 SK_MEMINFO_OPTMEM,     SK_MEMINFO_BACKLOG };
    int64_t total = SOCKET_BYTES;
    for (size_t i = 0; i < array_len(parts); i++) {
        /* TCP counts its queue twice, once as allocated. */
        bool again = parts[i] == SK_MEMINFO_WMEM_ALLOC && count > SK_MEMINFO_WMEM_QUEUED &&
                     info[SK_MEMINFO_WMEM_QUEUED] > 0;
        if ((size_t)parts[i] < count && info[parts[i]] > 0 && !again)
            total += info[parts[i]];
    }
    return total;
}

/* Attribute numbers; 0: none. */
struct attributes {
    int meminfo, queue, peer;
};

/* Upper bound of a receiver's unread bytes from closed senders. */
static int64_t unread(const struct unix_diag_msg *socket, uint32_t queue, uint32_t peer,
                      int64_t most)
{
    if (queue == 0 || (peer != 0 && socket->udiag_type != SOCK_DGRAM))
        return 0;
    if (socket->udiag_type == SOCK_DGRAM)
        return DATAGRAMS * most;
    return queue * (int64_t)ONE_BYTE < most ? queue * (int64_t)ONE_BYTE : most;
}

static void take_socket(struct nlmsghdr *row, size_t head, const struct attributes *wanted,
                        struct listed *out)
{
    if (row->nlmsg_len < NLMSG_LENGTH(head))
        return;
    struct rtattr *attr = (void *)((char *)NLMSG_DATA(row) + NLMSG_ALIGN(head));
    uint32_t queue = 0, peer = 0;
    int left = (int)(row->nlmsg_len - NLMSG_SPACE(head));
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == wanted->meminfo) {
            out->bytes += of_meminfo(RTA_DATA(attr), RTA_PAYLOAD(attr) / sizeof(int32_t));
            out->sockets++;
        }
        if (attr->rta_type == wanted->queue && RTA_PAYLOAD(attr) >= sizeof queue)
            memcpy(&queue, RTA_DATA(attr), sizeof queue);
        if (attr->rta_type == wanted->peer && RTA_PAYLOAD(attr) >= sizeof peer)
            memcpy(&peer, RTA_DATA(attr), sizeof peer);
    }
    if (wanted->queue)
        out->unread += unread(NLMSG_DATA(row), queue, peer, out->most);
}

/* Read one list to its end. */
static void list(int sock, const void *request, size_t len, size_t head,
                 const struct attributes *wanted, struct listed *out)
{
    static char room[65536] __attribute__((aligned(8)));
    if (send(sock, request, len, 0) != (ssize_t)len)
        return;
    for (;;) {
        ssize_t n = recv(sock, room, sizeof room, 0);
        if (n <= 0)
            return;
        struct nlmsghdr *row = (void *)room;
        for (; NLMSG_OK(row, (size_t)n); row = NLMSG_NEXT(row, n)) {
            if (row->nlmsg_type == NLMSG_DONE || row->nlmsg_type == NLMSG_ERROR)
                return;
            take_socket(row, head, wanted, out);
        }
    }
}

static void list_unix(int sock, struct listed *out)
{
    const struct {
        struct nlmsghdr head;
        struct unix_diag_req ask;
    } request = {
        { .nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        { .sdiag_family = AF_UNIX, .udiag_states = ~0u,
          .udiag_show = UDIAG_SHOW_MEMINFO | UDIAG_SHOW_RQLEN | UDIAG_SHOW_PEER },
    };
    static const struct attributes wanted = { UNIX_DIAG_MEMINFO, UNIX_DIAG_RQLEN, UNIX_DIAG_PEER };
    list(sock, &request, sizeof request, sizeof(struct unix_diag_msg), &wanted, out);
}

static void list_inet(int sock, int family, int protocol, struct listed *out)
{
    const struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } request = {
        { .nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        { .sdiag_family = (uint8_t)family, .sdiag_protocol = (uint8_t)protocol,
          .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1), .idiag_states = ~0u },
    };
    static const struct attributes wanted = { .meminfo = INET_DIAG_SKMEMINFO };
    list(sock, &request, sizeof request, sizeof(struct inet_diag_msg), &wanted, out);
}

/* Maximum that one unix socket can have sent: twice net.core.wmem_max, which cannot be read here
 * but caps SO_SNDBUF. */
static int64_t most_sent(void)
{
    own_fd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int most = INT_MAX / 2;
    socklen_t len = sizeof most;
    if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &most, sizeof most) < 0 ||
        getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &most, &len) < 0)
        return INT_MAX / 2;
    return most;
}

int64_t sockets_bytes(void)
{
    static const struct timeval patience = { .tv_sec = 1 };
    struct listed all = { .most = most_sent() };
    int64_t used = sockets_used(getpid());
    own_fd sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (sock >= 0 && setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0) {
        list_unix(sock, &all);
        for (int i = 0; i < 4; i++)
            list_inet(sock, i & 1 ? AF_INET6 : AF_INET, i & 2 ? IPPROTO_UDP : IPPROTO_TCP, &all);
    }
    if (all.sockets == 0) /* this kernel has no list, or it failed: assume the maximum */
        return used < 0 ? INT64_MAX / 2 : used * all.most;
    int64_t closed = (used > all.sockets ? used - all.sockets : 0) * all.most;
    return all.bytes + (closed < all.unread ? closed : all.unread);
}
