/* Architectures, layouts, caches and passes, for other folders. */
#ifndef DREY_MODEL_MODEL_H
#define DREY_MODEL_MODEL_H

#include "model/arch.h"
#include "model/deferred.h"
#include "model/kv.h"
#include "model/layout.h"
#include "model/pass.h"
#include "model/workspace.h"

#endif
