/* What outlives a text, for other folders. */
#pragma once

#include "store/kv_origin.h"
#include "store/prefix_store.h"
#include "store/session_file.h"
