/* Idle handles of one tool or server. Any thread. */
#include "net/pool.h"

void net_pool_init(struct net_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->count = 0;
}

void net_pool_done(struct net_pool *pool)
{
    while (pool->count > 0)
        net_http_close(pool->idle[--pool->count]);
    pthread_mutex_destroy(&pool->lock);
}

struct net_http *net_pool_take(struct net_pool *pool, struct err *err)
{
    struct net_http *http = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->count > 0)
        http = pool->idle[--pool->count];
    pthread_mutex_unlock(&pool->lock);
    if (!http)
        net_http_open(&http, err);
    return http;
}

void net_pool_give(struct net_pool *pool, struct net_http *http)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->count < NET_POOL_IDLE_MAX) {
        pool->idle[pool->count++] = http;
        http = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    net_http_close(http);
}
