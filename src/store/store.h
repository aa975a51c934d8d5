/* Keys and values that outlive a text, for other folders: those of a session in a file
 * (session_file.h), and beginnings of texts in memory and in a folder (prefix_store.h). Both say
 * what the bytes belong to (kv_origin.h), and refuse those of another origin. */
#pragma once

#include "store/kv_origin.h"
#include "store/prefix_store.h"
#include "store/session_file.h"
