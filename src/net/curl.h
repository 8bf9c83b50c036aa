/* libcurl, loaded at its first use: linked in, it would slow down every command's start. */
#ifndef NET_CURL_H
#define NET_CURL_H

#include <curl/curl.h>

#include "base/err.h"

struct net_curl {
    typeof(&curl_global_init) global_init;
    typeof(&curl_easy_init) easy_init;
    typeof(&curl_easy_cleanup) easy_cleanup;
    typeof(&curl_easy_reset) easy_reset;
    typeof(&curl_easy_setopt) easy_setopt;
    typeof(&curl_easy_strerror) easy_strerror;
    typeof(&curl_easy_getinfo) easy_getinfo;
    typeof(&curl_multi_init) multi_init;
    typeof(&curl_multi_cleanup) multi_cleanup;
    typeof(&curl_multi_add_handle) multi_add_handle;
    typeof(&curl_multi_remove_handle) multi_remove_handle;
    typeof(&curl_multi_perform) multi_perform;
    typeof(&curl_multi_poll) multi_poll;
    typeof(&curl_multi_info_read) multi_info_read;
    typeof(&curl_slist_append) slist_append;
    typeof(&curl_slist_free_all) slist_free_all;
    typeof(&curl_getdate) getdate;
    typeof(&curl_url) url;
    typeof(&curl_url_cleanup) url_cleanup;
    typeof(&curl_url_set) url_set;
    typeof(&curl_url_get) url_get;
    typeof(&curl_free) free_text;
};

/* The library's functions; any thread. NULL with ERR_HOST if it is missing. It stays loaded: it has
 * global state. */
const struct net_curl *net_curl(struct err *err);

#endif
