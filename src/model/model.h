/* Architectures, layouts, caches and passes, for other folders. */
#pragma once

#include "model/arch.h"
#include "model/deferred.h"
#include "model/kv.h"
#include "model/layout.h"
#include "model/pass.h"
#include "model/workspace.h"
