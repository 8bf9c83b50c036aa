/* Handles with open connections, lent to threads. One pool for each tool or server: a connection
 * that one of them may use is not another's. */
#ifndef NET_POOL_H
#define NET_POOL_H

#include <pthread.h>
#include <stddef.h>

#include "base/err.h"
#include "net/http.h"

#define NET_POOL_IDLE_MAX 4

struct net_pool {
    pthread_mutex_t lock;
    struct net_http *idle[NET_POOL_IDLE_MAX];
    size_t count;
};

void net_pool_init(struct net_pool *pool);
void net_pool_done(struct net_pool *pool);
/* An idle handle or a new one; NULL with ERR_HOST. */
struct net_http *net_pool_take(struct net_pool *pool, struct err *err);
void net_pool_give(struct net_pool *pool, struct net_http *http);

#endif
