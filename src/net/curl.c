/* libcurl by dlopen. Runs in every process that makes HTTP requests, in any thread. */
#include "net/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/attr.h"

#define LIBRARY "libcurl.so.4"

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    { "curl_global_init", offsetof(struct net_curl, global_init) },
    { "curl_easy_init", offsetof(struct net_curl, easy_init) },
    { "curl_easy_cleanup", offsetof(struct net_curl, easy_cleanup) },
    { "curl_easy_reset", offsetof(struct net_curl, easy_reset) },
    { "curl_easy_setopt", offsetof(struct net_curl, easy_setopt) },
    { "curl_easy_strerror", offsetof(struct net_curl, easy_strerror) },
    { "curl_easy_getinfo", offsetof(struct net_curl, easy_getinfo) },
    { "curl_multi_init", offsetof(struct net_curl, multi_init) },
    { "curl_multi_cleanup", offsetof(struct net_curl, multi_cleanup) },
    { "curl_multi_add_handle", offsetof(struct net_curl, multi_add_handle) },
    { "curl_multi_remove_handle", offsetof(struct net_curl, multi_remove_handle) },
    { "curl_multi_perform", offsetof(struct net_curl, multi_perform) },
    { "curl_multi_poll", offsetof(struct net_curl, multi_poll) },
    { "curl_multi_info_read", offsetof(struct net_curl, multi_info_read) },
    { "curl_slist_append", offsetof(struct net_curl, slist_append) },
    { "curl_slist_free_all", offsetof(struct net_curl, slist_free_all) },
    { "curl_getdate", offsetof(struct net_curl, getdate) },
    { "curl_url", offsetof(struct net_curl, url) },
    { "curl_url_cleanup", offsetof(struct net_curl, url_cleanup) },
    { "curl_url_set", offsetof(struct net_curl, url_set) },
    { "curl_url_get", offsetof(struct net_curl, url_get) },
    { "curl_free", offsetof(struct net_curl, free_text) },
};

static struct net_curl calls;
static bool whole;

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    whole = library != NULL;
    for (size_t i = 0; library && i < array_len(symbols); i++) {
        void *found = dlsym(library, symbols[i].name);
        whole = whole && found;
        memcpy((char *)&calls + symbols[i].offset, &found, sizeof found);
    }
    if (whole)
        calls.global_init(CURL_GLOBAL_DEFAULT);
}

const struct net_curl *net_curl(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (whole)
        return &calls;
    err_set(err, ERR_HOST, "load '" LIBRARY "', which makes HTTP requests");
    err_hint(err, "install libcurl (Debian: apt-get install libcurl4)");
    return NULL;
}
