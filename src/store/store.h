/* What outlives a text, for other folders. */
#ifndef DREY_STORE_STORE_H
#define DREY_STORE_STORE_H

#include "store/kv_origin.h"
#include "store/prefix_store.h"
#include "store/session_file.h"

#endif
